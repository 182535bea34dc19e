package compacted

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// Of several processes that change the same row of a table at the same time, one may, and the others hear of it.
// Whoever wants to change a row first writes a lock beside it. Everybody reads the locks in the order the broker gave
// them, and so agrees on who was first. What follows a lock may take several steps; a process that dies between them
// loses the lock after lockFor, and nothing else. One that is only stopped for longer still writes what follows: each
// record says until when it may be stored, and whoever reads one that brokers stored later takes it for void.
const (
	lockPrefix = "~/" // no name begins so
	lockFor    = 30 * time.Second
	byHeader   = "ferry-by"
	maxLocks   = 1000 // that nobody released are kept until then
)

// lockRecord is the value of a lock.
type lockRecord struct {
	By  string // who: random
	Row int64  // the offset of the row that is to be changed, or -1 for none
}

// rowLocks are the locks on the rows of one table.
type rowLocks struct {
	lasts  time.Duration // a lock
	mu     sync.Mutex
	locked map[string]rowLock // by the key of the row
	mine   map[string]*Contender
}

// rowLock is a lock that was first.
type rowLock struct {
	by string
	at time.Time
}

func newRowLocks(lasts time.Duration) *rowLocks {
	return &rowLocks{lasts: lasts, locked: map[string]rowLock{}, mine: map[string]*Contender{}}
}

// note takes a record of a table, in order, and reports whether it is about a lock. The row is at offset row then, or
// at -1.
func (c *rowLocks) note(r *kgo.Record, row func(key string) int64) bool {
	key, ok := strings.CutPrefix(string(r.Key), lockPrefix)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first, is := c.locked[key]
	if r.Value == nil {
		by := record.HeaderOf(r, byHeader)
		if x := c.mine[by]; x != nil {
			x.kept, x.late = is && first.by == by, r.Timestamp.After(x.until)
		}
		if is && first.by == by {
			delete(c.locked, key)
		}
		return true
	}
	var wanted lockRecord
	if json.Unmarshal(r.Value, &wanted) != nil || is && r.Timestamp.Sub(first.at) < c.lasts || row(key) != wanted.Row {
		return true
	}
	if len(c.locked) >= maxLocks {
		maps.DeleteFunc(c.locked, func(_ string, h rowLock) bool { return r.Timestamp.Sub(h.at) >= c.lasts })
	}
	c.locked[key] = rowLock{wanted.By, r.Timestamp}
	if x := c.mine[wanted.By]; x != nil {
		x.won, x.until = true, r.Timestamp.Add(c.lasts*2/3) // brokers' clocks may differ by the rest
	}
	return true
}

func (c *rowLocks) enter(x *Contender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mine[x.by] = x
}

func (c *rowLocks) leave(by string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mine, by)
}

// ErrContested says that somebody else changes a row, and was first.
var ErrContested = driver.NewError(driver.ErrConflict, "somebody else changes the message at the same time",
	"look at it again; what a crash left half done can be changed after 30 s", nil)

// Contender wants to change a row of a table.
type Contender struct {
	Partition int32
	Key       string
	Row       int64 // where the row was when its change was decided, or -1: if it is elsewhere now, nobody may change it
	// Made is what becomes of the row elsewhere, Ends what ends it here. The release is the last of the ends.
	Made, Ends []*kgo.Record
	// Change returns the ends, if that takes more. It is called when nobody else may change the row.
	Change func(ctx context.Context) (ends []*kgo.Record, err error)

	by      string
	release *kgo.Record
	Err     error
	over    bool // err is what became of it

	// Of the lock of this process. Each is read when the record that brings it, a lock or its release, is in the table.
	won   bool // it was first
	until time.Time
	kept  bool // nobody else had a lock on the row until it was released
	late  bool // what ends the row was stored too late, and is void
}

func (x *Contender) end(err error) { x.Err, x.over = err, true }

// Contend stores what is made of a row, for one of those who want to change it at the same time, and then what ends it.
func (t *Table) Contend(ctx context.Context, x Contender) error {
	t.ContendAll(ctx, []*Contender{&x})
	return x.Err
}

// ContendAll is Contend for many rows, each on its own but stored together. What became of each is its err.
func (t *Table) ContendAll(ctx context.Context, xs []*Contender) {
	by := time.Now().Add(min(cluster.TransactFor, t.locks.lasts/3))
	t.lockAll(ctx, xs)
	defer func() {
		for _, x := range xs {
			t.locks.leave(x.by)
		}
	}()
	for _, x := range going(xs) {
		if x.Change != nil {
			var err error
			if x.Ends, err = x.Change(ctx); err != nil {
				t.giveUp(x, err)
			}
		}
		record.Limit(x.until, x.Made, x.Ends)
		x.Ends = append(x.Ends, x.release)
	}
	t.replaceAll(ctx, by, going(xs))
	for _, x := range going(xs) {
		switch {
		case x.late && len(x.Made)+len(x.Ends) > 1: // there is more than the release
			t.restore(ctx, x)
			x.end(errStoredLate(x))
		case !x.kept:
			x.end(ErrContested)
		}
	}
}

// going are those of which it is not known yet what becomes of them.
func going(xs []*Contender) []*Contender {
	return slices.DeleteFunc(slices.Clone(xs), func(x *Contender) bool { return x.over })
}

// giveUp ends a change that does not take place: nobody need wait for the lock to lapse.
func (t *Table) giveUp(x *Contender, err error) {
	t.d.cluster.Client.Produce(context.Background(), x.release, nil)
	x.end(err)
}

// lockAll stores locks, and gives up those that were not first.
func (t *Table) lockAll(ctx context.Context, xs []*Contender) {
	locks := make([]*kgo.Record, len(xs))
	for i, x := range xs {
		x.by = rand.Text()
		t.locks.enter(x)
		x.release = record.Tombstone(t.Topic, x.Partition, lockPrefix+x.Key)
		x.release.Headers = []kgo.RecordHeader{{Key: byHeader, Value: []byte(x.by)}}
		value, _ := json.Marshal(lockRecord{x.by, x.Row}) // plain data: never fails
		locks[i] = &kgo.Record{Topic: t.Topic, Partition: x.Partition, Key: x.release.Key, Value: value}
	}
	for i, err := range t.putEach(ctx, locks) {
		switch x := xs[i]; {
		case err != nil: // it may be stored all the same
			t.giveUp(x, cluster.NotApplied(err, "the change could not be announced", "try again: nothing was changed"))
		case !x.won:
			t.giveUp(x, ErrContested)
		}
	}
}

// replaceAll stores what is made of rows and what ends them, and waits until the ends are in the table. It ends before
// the locks do, even if brokers must end it: a transaction that is not ended after cluster.TransactFor is aborted
// within as long again.
func (t *Table) replaceAll(ctx context.Context, by time.Time, xs []*Contender) {
	var moving, ending []*Contender
	for _, x := range xs {
		if len(x.Made) > 0 {
			moving = append(moving, x)
		} else {
			ending = append(ending, x)
		}
	}
	switch {
	case len(moving) == 0:
	case time.Now().After(by):
		for _, x := range moving {
			t.giveUp(x, cluster.ErrTooLate())
		}
	case t.d.cluster.Settings.Transactions:
		t.exchangeAll(ctx, by, moving)
	default:
		storeEach(ctx, moving, func(x *Contender) []*kgo.Record { return x.Made }, t.d.cluster.ProduceEach)
		for _, x := range moving {
			t.made(x, x.Err)
		}
		ending = append(ending, going(moving)...)
	}
	storeEach(ctx, ending, func(x *Contender) []*kgo.Record { return x.Ends }, t.putEach)
	for _, x := range ending {
		x.over = x.Err != nil
	}
}

// made is told what became of what is made of a row. While nobody knows, the lock stays until it lapses.
func (t *Table) made(x *Contender, err error) {
	switch {
	case errors.Is(err, driver.ErrUnknown):
		x.end(err)
	case err != nil:
		t.giveUp(x, err)
	}
}

// storeEach stores records of contenders together, and tells each what became of its own.
func storeEach(ctx context.Context, xs []*Contender, which func(*Contender) []*kgo.Record,
	store func(context.Context, []*kgo.Record) []error) {
	var records []*kgo.Record
	var of []*Contender
	for _, x := range xs {
		for _, r := range which(x) {
			records, of = append(records, r), append(of, x)
		}
	}
	for i, err := range store(ctx, records) {
		of[i].Err = cluster.Joined(of[i].Err, err)
	}
}

// exchangeAll stores all of it in one transaction.
func (t *Table) exchangeAll(ctx context.Context, by time.Time, xs []*Contender) {
	var made, ends []*kgo.Record
	for _, x := range xs {
		made, ends = append(made, x.Made...), append(ends, x.Ends...)
	}
	err := t.d.cluster.Exchange(ctx, by, made, ends)
	for _, x := range xs {
		t.made(x, err)
		if err == nil {
			x.Err = t.WaitFor(ctx, x.release)
			x.over = x.Err != nil
		}
	}
}

// errStoredLate is for who was stopped, or held up, for longer than its lock lasts.
func errStoredLate(x *Contender) error {
	const hint = "look at the message again"
	if len(x.Made) == 0 {
		return driver.NewError(driver.ErrNotApplied, "the change was stored too late to count", hint, nil)
	}
	return driver.NewError(driver.ErrUnknown, "the change was stored too late to count, but for what may have come of "+
		"the message", hint, nil)
}

// restore stores a row again that lies under the key of an end which is void: compaction would keep only that. Who dies
// before it leaves the row to be lost when its segment is compacted.
func (t *Table) restore(ctx context.Context, x *Contender) {
	covered := map[string]bool{}
	for _, r := range x.Ends[:len(x.Ends)-1] {
		covered[string(r.Key)] = true
	}
	row := t.Row(x.Key)
	if row < 0 {
		for key := range covered {
			if r := t.Get(key); r != nil {
				row = r.Offset
			}
		}
	}
	r, err := t.d.cluster.ReadOne(ctx, t.Topic, x.Partition, row)
	if err != nil || r == nil || !covered[string(r.Key)] {
		return
	}
	again := &kgo.Record{Topic: t.Topic, Partition: x.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers}
	_ = t.Contend(ctx, Contender{Partition: x.Partition, Key: x.Key, Row: t.Row(x.Key), Ends: []*kgo.Record{again}})
}
