package kafka

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Of several processes that change the same row of a table at the same time, one may, and the others hear of it. Whoever wants to change a row first
// writes a claim beside it. Everybody reads the claims in the order the broker gave them, and so agrees on who was first. What follows a claim may take
// several steps; a process that dies between them loses the claim after claimFor, and nothing else. One that is only stopped for longer still writes what
// follows: each record says until when it may be stored, and whoever reads one that brokers stored later takes it for void.
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
	lasts time.Duration // a claim
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
	won   bool // it was first
	until time.Time
	kept  bool // nobody else had a claim on the row until it was released
	late  bool // what ends the row was stored too late, and is void
}

func newContests(lasts time.Duration) *contests {
	return &contests{lasts: lasts, holds: map[string]hold{}, mine: map[string]*attempt{}}
}

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
			a.kept, a.late = is && held.by == by, r.Timestamp.After(a.until)
		}
		if is && held.by == by {
			delete(c.holds, key)
		}
		return true
	}
	var claim rowClaim
	if json.Unmarshal(r.Value, &claim) != nil || is && r.Timestamp.Sub(held.at) < c.lasts || row(key) != claim.Row {
		return true
	}
	c.sweep(r.Timestamp)
	c.holds[key] = hold{claim.By, r.Timestamp}
	if a := c.mine[claim.By]; a != nil {
		a.won, a.until = true, r.Timestamp.Add(c.lasts*2/3) // brokers' clocks may differ by the rest
	}
	return true
}

// sweep forgets claims that have ended, when there are many.
func (c *contests) sweep(now time.Time) {
	if len(c.holds) < maxClaims {
		return
	}
	for key, h := range c.holds {
		if now.Sub(h.at) >= c.lasts {
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

// contender wants to change a row of a table.
type contender struct {
	partition int32
	key       string
	row       int64 // where the row was when its change was decided, or -1: if it is elsewhere now, nobody may change it
	// change returns what is made of the row, and what ends it. It is called when nobody else may change the row.
	change func(ctx context.Context) (made, ends []*kgo.Record, err error)

	*attempt
	by         string
	release    *kgo.Record
	made, ends []*kgo.Record // the release is the last of the ends
	changes    bool          // there is more than the release
	err        error
	over       bool // err is what became of it
}

func (x *contender) end(err error) { x.err, x.over = err, true }

// contend runs change for one of those who want to change a row at the same time, and then stores what it returns: first what is made of the row, then
// what ends it.
func (t *table) contend(ctx context.Context, partition int32, key string, row int64, change func(ctx context.Context) (made, ends []*kgo.Record, err error)) error {
	x := &contender{partition: partition, key: key, row: row, change: change}
	t.contendAll(ctx, []*contender{x})
	return x.err
}

// contendAll is contend for many rows, each on its own but stored together. What became of each is its err.
func (t *table) contendAll(ctx context.Context, xs []*contender) {
	by := time.Now().Add(min(transactFor, t.contests.lasts/3))
	t.claimAll(ctx, xs)
	defer func() {
		for _, x := range xs {
			t.contests.leave(x.by)
		}
	}()
	for _, x := range going(xs) {
		var err error
		if x.made, x.ends, err = x.change(ctx); err != nil {
			t.giveUp(x, err)
		}
		x.changes = len(x.made)+len(x.ends) > 0
		limit(x.until, x.made, x.ends)
		x.ends = append(x.ends, x.release)
	}
	t.replaceAll(ctx, by, going(xs))
	for _, x := range going(xs) {
		switch a := t.contests.state(x.attempt); {
		case a.late && x.changes:
			t.restore(ctx, x)
			x.end(errStoredLate(x))
		case !a.kept:
			x.end(contested(errContested))
		}
	}
}

// going are those of which it is not known yet what becomes of them.
func going(xs []*contender) (left []*contender) {
	for _, x := range xs {
		if !x.over {
			left = append(left, x)
		}
	}
	return left
}

// giveUp ends a change that does not take place: nobody need wait for the claim to lapse.
func (t *table) giveUp(x *contender, err error) {
	t.d.client.Produce(context.Background(), x.release, nil)
	x.end(err)
}

// claimAll stores claims, and gives up those that were not first.
func (t *table) claimAll(ctx context.Context, xs []*contender) {
	claims := make([]*kgo.Record, len(xs))
	for i, x := range xs {
		x.by = rand.Text()
		x.attempt = t.contests.enter(x.by)
		x.release = tombstone(t.topic, x.partition, claimPrefix+x.key)
		x.release.Headers = []kgo.RecordHeader{{Key: byHeader, Value: []byte(x.by)}}
		value, _ := json.Marshal(rowClaim{x.by, x.row}) // plain data: never fails
		claims[i] = &kgo.Record{Topic: t.topic, Partition: x.partition, Key: x.release.Key, Value: value}
	}
	for i, err := range t.putEach(ctx, claims) {
		switch x := xs[i]; {
		case err != nil: // it may be stored all the same
			t.giveUp(x, driver.NewError(driver.ErrNotApplied, "the change could not be announced", "try again: nothing was changed", err))
		case !t.contests.state(x.attempt).won:
			t.giveUp(x, contested(errContested))
		}
	}
}

// replaceAll stores what is made of rows and what ends them, and waits until the ends are in the table. It ends before the claims do, even if brokers must
// end it: a transaction that is not ended after transactFor is aborted within as long again.
func (t *table) replaceAll(ctx context.Context, by time.Time, xs []*contender) {
	var simple []*contender
	for _, x := range xs {
		if len(x.made) == 0 {
			simple = append(simple, x)
		}
	}
	xs = slices.DeleteFunc(slices.Clone(xs), func(x *contender) bool { return len(x.made) == 0 })
	switch {
	case len(xs) == 0:
	case time.Now().After(by):
		for _, x := range xs {
			t.giveUp(x, errTooLate())
		}
	case t.d.o.Transactions:
		t.exchangeAll(ctx, by, xs)
	default:
		t.storeMade(ctx, xs)
		simple = append(simple, going(xs)...)
	}
	t.storeEnds(ctx, simple)
}

// storeMade stores what is made of rows.
func (t *table) storeMade(ctx context.Context, xs []*contender) {
	var records []*kgo.Record
	var of []*contender
	for _, x := range xs {
		for _, r := range x.made {
			records, of = append(records, r), append(of, x)
		}
	}
	for i, err := range t.d.produceEach(ctx, records) {
		if err != nil {
			of[i].err = errors.Join(of[i].err, err)
		}
	}
	for _, x := range xs {
		switch {
		case errors.Is(x.err, driver.ErrUnknown):
			x.end(x.err)
		case x.err != nil:
			t.giveUp(x, x.err)
		}
	}
}

// storeEnds stores what ends rows, and waits until it is in the table.
func (t *table) storeEnds(ctx context.Context, xs []*contender) {
	var records []*kgo.Record
	var of []*contender
	for _, x := range xs {
		for _, r := range x.ends {
			records, of = append(records, r), append(of, x)
		}
	}
	for i, err := range t.putEach(ctx, records) {
		if err != nil {
			of[i].end(errors.Join(of[i].err, err))
		}
	}
}

// exchangeAll stores all of it in one transaction.
func (t *table) exchangeAll(ctx context.Context, by time.Time, xs []*contender) {
	var made, ends []*kgo.Record
	for _, x := range xs {
		made, ends = append(made, x.made...), append(ends, x.ends...)
	}
	err := t.d.exchange(ctx, by, made, ends)
	for _, x := range xs {
		switch {
		case errors.Is(err, driver.ErrUnknown):
			x.end(err)
		case err != nil:
			t.giveUp(x, err)
		default:
			if err := t.waitFor(ctx, x.release); err != nil {
				x.end(err)
			}
		}
	}
}
