package kafka

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Of several processes that change the same row of a table at the same time, one may, and the others hear of it. Whoever wants to change a row first
// writes a claim beside it. Everybody reads the claims in the order the broker gave them, and so agrees on who was first. What follows a claim may take
// several steps; a process that dies between them loses the claim after claimFor, and nothing else.
const (
	claimPrefix = "~/" // no name begins so
	claimFor    = 30 * time.Second
	byHeader    = "ferry-by"
	maxClaims   = 1000 // that nobody released are kept until then
)

// rowClaim is the value of a claim.
type rowClaim struct {
	By  string // who: random
	Row int64  // the offset of the row that is to be changed, or -1 for none
}

// contests are the claims on the rows of one table.
type contests struct {
	mu    sync.Mutex
	holds map[string]hold // by the key of the row
	mine  map[string]*attempt
}

// hold is a claim that was first.
type hold struct {
	by string
	at time.Time
}

// attempt is a claim of this process.
type attempt struct {
	won  bool // it was first
	kept bool // nobody else had a claim on the row until it was released
}

func newContests() *contests { return &contests{holds: map[string]hold{}, mine: map[string]*attempt{}} }

// note takes a record of a table, in order, and reports whether it is about a claim. The row is at offset row then, or at -1.
func (c *contests) note(r *kgo.Record, row func(key string) int64) bool {
	key, ok := strings.CutPrefix(string(r.Key), claimPrefix)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held, is := c.holds[key]
	if r.Value == nil {
		by := headerOf(r, byHeader)
		if a := c.mine[by]; a != nil {
			a.kept = is && held.by == by
		}
		if is && held.by == by {
			delete(c.holds, key)
		}
		return true
	}
	var claim rowClaim
	if json.Unmarshal(r.Value, &claim) != nil || is && r.Timestamp.Sub(held.at) < claimFor || row(key) != claim.Row {
		return true
	}
	c.sweep(r.Timestamp)
	c.holds[key] = hold{claim.By, r.Timestamp}
	if a := c.mine[claim.By]; a != nil {
		a.won = true
	}
	return true
}

// sweep forgets claims that have ended, when there are many.
func (c *contests) sweep(now time.Time) {
	if len(c.holds) < maxClaims {
		return
	}
	for key, h := range c.holds {
		if now.Sub(h.at) >= claimFor {
			delete(c.holds, key)
		}
	}
}

func (c *contests) enter(by string) *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &attempt{}
	c.mine[by] = a
	return a
}

func (c *contests) leave(by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mine, by)
}

func (c *contests) state(a *attempt) attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *a
}

func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// errContested says that somebody else changes a row.
var errContested = errors.New("somebody else was first")

func contested(err error) error {
	return driver.NewError(driver.ErrConflict, "somebody else changes the message at the same time", "look at it again; what a crash left half done can be changed after 30 s", err)
}

// contend runs change for one of those who want to change a row at the same time, and then stores what it returns: first what is made of the row, then
// what ends it. The row was at an offset when the caller decided, or at -1: if it was changed since, nobody may.
func (t *table) contend(ctx context.Context, partition int32, key string, row int64, change func(ctx context.Context) (made, ends []*kgo.Record, err error)) error {
	began := time.Now()
	by := rand.Text()
	a := t.contests.enter(by)
	defer t.contests.leave(by)
	value, _ := json.Marshal(rowClaim{by, row}) // plain data: never fails
	release := tombstone(t.topic, partition, claimPrefix+key)
	release.Headers = []kgo.RecordHeader{{Key: byHeader, Value: []byte(by)}}
	if err := t.put(ctx, &kgo.Record{Topic: t.topic, Partition: partition, Key: release.Key, Value: value}); err != nil {
		t.d.client.Produce(context.Background(), release, nil) // in case it is stored
		return driver.NewError(driver.ErrNotApplied, "the change could not be announced", "try again: nothing was changed", err)
	}
	if !t.contests.state(a).won {
		t.d.client.Produce(context.Background(), release, nil)
		return contested(errContested)
	}
	made, ends, err := change(ctx)
	if err != nil {
		t.d.client.Produce(context.Background(), release, nil)
		return err
	}
	if err := t.replace(ctx, began.Add(transactFor), made, append(ends, release)); err != nil {
		return err
	}
	if !t.contests.state(a).kept {
		return contested(errContested)
	}
	return nil
}

// replace stores what is made of a row and what ends it, the release of its claim last, and waits until the end is in the table. It ends before the
// claim does, even if brokers must end it: a transaction that is not ended after transactFor is aborted within as long again.
func (t *table) replace(ctx context.Context, by time.Time, made, ends []*kgo.Record) error {
	if len(made) == 0 {
		return t.put(ctx, ends...)
	}
	if err := t.d.exchange(ctx, by, made, ends); err != nil {
		if !errors.Is(err, driver.ErrUnknown) {
			t.d.client.Produce(context.Background(), ends[len(ends)-1], nil) // nobody need wait for the claim to lapse
		}
		return err
	}
	for _, r := range ends {
		if err := t.waitFor(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
