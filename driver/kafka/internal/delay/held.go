package delay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// The held topic is a table with three kinds of rows: messages that are held until they are moved or deleted, marks
// that void the copies of one delayed message, and marks that void what was delayed for a topic before.
func heldKey(topic, id string) string { return "h/" + delayKey(topic, id) }

func voidKey(topic, id string) string { return "v/" + delayKey(topic, id) }

func purgedKey(topic string) string { return "p/" + topic }

// voidMark voids copies of a delayed message whose stamp is lower.
type voidMark struct {
	Stamp int64
	Until time.Time // no copy is left after it
}

// EveryStamp is in a mark that voids all copies: the message was deleted, or fired by hand.
const EveryStamp = 1 << 62

// markKept is how long a mark outlives the message: copies that a crash left behind are late.
const markKept = time.Hour

// voided reports whether a delayed message was moved or deleted meanwhile.
func (w *firer) voided(x *Delayed) bool {
	if r := w.heldRows.Get(purgedKey(x.M.Topic)); r != nil && x.entered.Before(r.Timestamp) {
		return true
	}
	return voids(w.heldRows.Get(voidKey(x.M.Topic, x.M.ID)), x)
}

// voids reports whether a mark is about this copy of a message.
func voids(r *kgo.Record, x *Delayed) bool {
	var mark voidMark
	return r != nil && json.Unmarshal(r.Value, &mark) == nil && x.S.Stamp < mark.Stamp
}

func (w *firer) record(key string, row any) *kgo.Record {
	value, _ := json.Marshal(row) // plain data: never fails
	return &kgo.Record{Topic: w.d.cluster.HeldTopic(), Key: []byte(key), Value: value}
}

// Change stores what is made of what is delayed or held, for one of those who want to change it at the same time, and
// ends it, or its copies with a lower stamp, unless it is about to fire.
func (d *Delays) Change(ctx context.Context, x *Delayed, stamp int64, made ...*kgo.Record) error {
	w, err := d.Start(ctx)
	if err != nil {
		return err
	}
	if x.S.Hold {
		key := heldKey(x.M.Topic, x.M.ID)
		return w.heldRows.Contend(ctx, compacted.Contender{Key: key, Row: x.offset, Made: made,
			Ends: []*kgo.Record{record.Tombstone(d.cluster.HeldTopic(), 0, key)}})
	}
	if x.rings().Sub(d.cluster.Now()) < 2*sealed {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is about to be due, or to expire", x.M.ID),
			"wait until it is ready, or gone", nil)
	}
	key, row := voidKey(x.M.Topic, x.M.ID), int64(-1)
	r := w.heldRows.Get(key)
	if r != nil {
		row = r.Offset
	}
	if voids(r, x) {
		return cluster.ErrNoMessage(driver.Target{Topic: x.M.Topic, ID: x.M.ID, Ref: x.Ref})
	}
	mark := w.record(key, voidMark{Stamp: stamp, Until: x.due.Add(markKept)})
	err = w.heldRows.Contend(ctx, compacted.Contender{Key: key, Row: row, Made: made, Ends: []*kgo.Record{mark}})
	if err == nil && x.rings().Sub(d.cluster.Now()) < sealed+sealed/2 {
		return driver.NewError(driver.ErrUnknown, fmt.Sprintf("message %q became due, or expired, meanwhile", x.M.ID),
			"see whether it was delivered, or died, all the same", nil)
	}
	return err
}

// voidAll ends what is delayed for a topic now. What is published later has a later time.
func (w *firer) voidAll(ctx context.Context, topic string) error {
	if err := cluster.Pause(ctx, 2*time.Millisecond); err != nil { // times are cut to milliseconds
		return err
	}
	return w.heldRows.Put(ctx, w.record(purgedKey(topic), struct{}{}))
}

// sweep ends rows that mean nothing any more: marks that outlived theirs, and expired messages.
func (w *firer) sweep(ctx context.Context, now time.Time) {
	var ends []*kgo.Record
	for _, r := range w.heldRows.All() {
		var mark voidMark
		if strings.HasPrefix(string(r.Key), "v/") && json.Unmarshal(r.Value, &mark) == nil && mark.Until.Before(now) {
			ends = append(ends, record.Tombstone(r.Topic, r.Partition, string(r.Key)))
		}
	}
	_ = w.d.cluster.Produce(ctx, ends...)                     // tried again with the next sweep
	for keys := range slices.Chunk(w.expired("", now), 100) { // with their bodies
		w.buryHeld(ctx, keys, now)
	}
}

// buryHeld ends held messages that have expired, for which dead letters may come first. What it cannot is tried again
// with the next sweep.
func (w *firer) buryHeld(ctx context.Context, keys []string, now time.Time) {
	at := map[int32][]int64{}
	for _, key := range keys {
		at[0] = append(at[0], max(0, w.heldRows.OffsetOf(key))) // what is not its row any more nobody may change
	}
	var xs []*compacted.Contender
	_ = w.d.cluster.ReadAt(ctx, w.d.cluster.HeldTopic(), at, func(r *kgo.Record) {
		if x, ok := readLater(r); ok && x.expired(now) {
			c := &compacted.Contender{Key: string(r.Key), Row: r.Offset,
				Ends: []*kgo.Record{record.Tombstone(r.Topic, 0, string(r.Key))}}
			if t, err := w.d.registry.Current(ctx, x.M.Topic); err == nil {
				c.Made = w.letters(t, x, now)
			} else if !cluster.IsNotFound(err) {
				return
			}
			xs = append(xs, c)
		}
	})
	w.heldRows.ContendAll(ctx, xs)
}

// expired are the keys of held messages, of one topic or of all, whose TTL has passed.
func (w *firer) expired(topic string, now time.Time) (keys []string) {
	prefix := ""
	if topic != "" {
		prefix = heldKey(topic, "")
	}
	w.heldMu.Lock()
	defer w.heldMu.Unlock()
	for key, at := range w.expiring {
		if at.Before(now) && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// followHeld keeps the marks in memory, and of held messages where they are.
func (w *firer) followHeld() {
	w.heldRows, w.expiring = compacted.NewIndex(heldLists), map[string]time.Time{}
	w.heldRows.Table = w.d.tables.Begin(&compacted.Table{Changed: w.heldChanged, Row: w.heldRows.OffsetOf, Leaves: isHeld},
		w.d.cluster.HeldTopic(), []int32{0})
}

func isHeld(r *kgo.Record) bool { return strings.HasPrefix(string(r.Key), "h/") }

// heldList is the listing of what is held for a topic.
func heldList(topic string) string { return "h/" + topic }

// heldLists are heldList for held messages, and one for each kind of mark.
func heldLists(key string) (list, name string) {
	kind, rest, _ := strings.Cut(key, "/")
	if topic, _, ok := strings.Cut(rest, "/"); ok && kind == "h" {
		return heldList(topic), key
	}
	return kind, key
}

func (w *firer) heldChanged(r *kgo.Record) {
	w.heldRows.Note(r)
	if !isHeld(r) || record.IsLate(r) {
		return
	}
	w.heldMu.Lock()
	defer w.heldMu.Unlock()
	delete(w.expiring, string(r.Key))
	if r.Value == nil || record.HeaderOf(r, ttlHeader) == "" {
		return
	}
	if x, ok := readLater(r); ok && !x.expires().IsZero() {
		w.expiring[string(r.Key)] = x.expires()
	}
}

// ttlHeader is in the records of messages that expire.
const ttlHeader = "ferry-ttl"

// readHeld turns a record of a held message into an entry, unless it has expired.
func readHeld(now time.Time) func(*kgo.Record) (driver.Entry, bool) {
	return func(r *kgo.Record) (driver.Entry, bool) {
		x, ok := readLater(r)
		if !ok || x.expired(now) {
			return driver.Entry{}, false
		}
		return x.Entry(), true
	}
}

// findHeld looks for a held message; nil when it is not there.
func (w *firer) findHeld(ctx context.Context, target driver.Target) (*Delayed, error) {
	offset := w.heldRows.OffsetOf(heldKey(target.Topic, target.ID))
	if !target.Ref.IsZero() {
		offset = int64(target.Ref.Pos) - 1
	}
	if offset < 0 || !target.Ref.IsZero() && target.Ref.Sub != record.SubHeld {
		return nil, nil
	}
	r, err := w.d.cluster.ReadOne(ctx, w.d.cluster.HeldTopic(), 0, offset)
	if err != nil || r == nil || r.Value == nil || !isHeld(r) || !w.heldRows.Current(r) {
		return nil, err
	}
	if x, ok := readLater(r); ok && x.M.Topic == target.Topic && record.Named(target, x.Ref, x.M.ID) &&
		!x.expired(w.d.cluster.Now()) {
		return x, nil
	}
	return nil, nil
}

// blind says that marks may have come that are about a message and are not known. Those that count were stored before
// sealed.
func (w *firer) blind(x *Delayed) bool { return w.synced.Before(x.rings().Add(-sealed)) }

// lookAhead asks for the marks a while before the next message needs them, and reports whether it did: nobody who is
// due waits for them then.
func (w *firer) lookAhead(now time.Time) bool {
	if w.timers.Len() == 0 || !w.blind(w.timers.Top()) || w.timers.Top().rings().Sub(now) >= sealed/2 {
		return false
	}
	w.look.Give()
	return true
}

// readMarks learns which messages were moved or deleted, whenever it is asked, until the driver ends.
func (w *firer) readMarks(ctx context.Context) {
	w.look.Each(ctx, func() {
		now := w.d.cluster.Now()
		if err := w.heldRows.Sync(ctx); err != nil {
			_ = cluster.Pause(ctx, cluster.FetchWait)
		} else {
			w.mu.Lock()
			w.synced = now
			w.mu.Unlock()
		}
		w.ring.Give() // after an error it is asked again
	})
}
