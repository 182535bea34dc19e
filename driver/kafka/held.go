package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// The held topic is a table with three kinds of rows: messages that are held until they are moved or deleted, marks
// that void the copies of one delayed message, and marks that void what was delayed for a topic before.
func heldKey(topic, id string) string { return "h/" + delayKey(topic, id) }
func voidKey(topic, id string) string { return "v/" + delayKey(topic, id) }
func purgedKey(topic string) string   { return "p/" + topic }

// voidMark voids copies of a delayed message whose stamp is lower.
type voidMark struct {
	Stamp int64
	Until time.Time // no copy is left after it
}

// everyStamp is in a mark that voids all copies: the message was deleted, or fired by hand.
const everyStamp = 1 << 62

// markKept is how long a mark outlives the message: copies that a crash left behind are late.
const markKept = time.Hour

// voided reports whether a delayed message was moved or deleted meanwhile.
func (w *delays) voided(x *delayed) bool {
	if r := w.held.get(purgedKey(x.m.Topic)); r != nil && x.entered.Before(r.Timestamp) {
		return true
	}
	var mark voidMark
	r := w.held.get(voidKey(x.m.Topic, x.m.ID))
	return r != nil && json.Unmarshal(r.Value, &mark) == nil && x.s.Stamp < mark.Stamp
}

func (w *delays) put(ctx context.Context, key string, row any) error {
	r := &kgo.Record{Topic: w.d.heldTopic(), Key: []byte(key)}
	if row != nil {
		r.Value, _ = json.Marshal(row) // plain data: never fails
	}
	return w.held.put(ctx, r)
}

// void ends a delayed message, or its copies with a lower stamp.
func (w *delays) void(ctx context.Context, x *delayed, stamp int64) error {
	if x.s.Hold {
		return w.held.put(ctx, tombstone(w.d.heldTopic(), 0, heldKey(x.m.Topic, x.m.ID)))
	}
	err := w.put(ctx, voidKey(x.m.Topic, x.m.ID), voidMark{Stamp: stamp, Until: x.due.Add(markKept)})
	if err == nil && x.due.Sub(w.d.now()) < sealed+sealed/2 {
		return driver.NewError(driver.ErrUnknown, fmt.Sprintf("message %q became due meanwhile", x.m.ID), "see whether it was delivered all the same", nil)
	}
	return err
}

// mayChange refuses to move or delete what is about to fire.
func (w *delays) mayChange(x *delayed) error {
	if !x.s.Hold && x.due.Sub(w.d.now()) < 2*sealed {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is about to be due", x.m.ID), "wait until it is ready", nil)
	}
	return nil
}

// voidAll ends what is delayed for a topic now. What is published later has a later time.
func (w *delays) voidAll(ctx context.Context, topic string) error {
	if err := pause(ctx, 2*time.Millisecond); err != nil { // times are cut to milliseconds
		return err
	}
	return w.put(ctx, purgedKey(topic), struct{}{})
}

// sweep deletes rows that mean nothing any more: expired messages, and marks that outlived theirs.
func (w *delays) sweep(ctx context.Context, now time.Time) {
	var ends []*kgo.Record
	for _, r := range w.held.all() {
		key, old := string(r.Key), false
		switch {
		case strings.HasPrefix(key, "h/"):
			x, ok := readLater(r)
			old = ok && x.expired(now)
		case strings.HasPrefix(key, "v/"):
			var mark voidMark
			old = json.Unmarshal(r.Value, &mark) == nil && mark.Until.Before(now)
		}
		if old {
			ends = append(ends, tombstone(r.Topic, r.Partition, key))
		}
	}
	_ = w.d.produce(ctx, ends...) // tried again with the next sweep
}
