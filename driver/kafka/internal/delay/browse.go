package delay

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// Page is a page of what is delayed or held for a topic.
func (d *Delays) Page(ctx context.Context, topic string, q driver.Query) (page driver.Page, err error) {
	w, err := d.Existing(ctx)
	if w == nil || err != nil {
		return page, err
	}
	if err := w.heldRows.Sync(ctx); err != nil {
		return page, err
	}
	if q.State == driver.StateHeld {
		return w.heldRows.Browse(ctx, heldList(topic), q, readHeld(d.cluster.Now()))
	}
	return w.browse(ctx, topic, q)
}

// tierCursor is a place in the tiers. They are listed from the longest to the shortest, so that what hops to the next
// one meanwhile is listed twice rather than not at all.
type tierCursor struct {
	partition int32
	offset    int64
}

func (c tierCursor) String() string { return fmt.Sprintf("tier.%d.%d.0", c.partition, c.offset) }

func (w *firer) readCursor(text string) (c tierCursor, err error) {
	if text == "" {
		return tierCursor{partition: int32(tiers*w.width) - 1}, nil
	}
	if _, err = fmt.Sscanf(text, "tier.%d.%d.0", &c.partition, &c.offset); err != nil ||
		c.partition >= int32(tiers*w.width) {
		err = driver.NewError(driver.ErrInvalid, "the cursor is not of this driver",
			"use the cursor that an earlier page ended with, or none", err)
	}
	return c, err
}

// unlisted is what a page left of the last answer of the brokers, for the page after it.
type unlisted struct {
	at      tierCursor
	records []*kgo.Record
	next    int64 // behind them
}

// listing is a page that is being filled.
type listing struct {
	w     *firer
	topic string
	q     driver.Query
	now   time.Time
	seen  map[string]bool // ids
	page  driver.Page
}

func (l *listing) full() bool {
	return len(l.page.Entries) == l.q.Limit || l.page.Scanned == l.q.MaxScan
}

// take looks at a record of the tiers.
func (l *listing) take(r *kgo.Record, done *offsets.Set) {
	if r.Attrs.IsControl() {
		return
	}
	l.page.Scanned++
	x, ok := readLater(r)
	if ok && !done.Has(r.Offset) && !l.seen[x.M.ID] && l.w.lives(x, l.topic, l.now) {
		l.seen[x.M.ID] = true
		l.page.Entries = append(l.page.Entries, x.Entry())
	}
}

// browse lists what is delayed for a topic from a cursor on: tier by tier, in the order it came there.
func (w *firer) browse(ctx context.Context, topic string, q driver.Query) (page driver.Page, err error) {
	at, err := w.readCursor(q.Cursor)
	if err != nil {
		return page, err
	}
	extents, err := w.extents(ctx)
	if err != nil {
		return page, err
	}
	l := listing{w: w, topic: topic, q: q, now: w.d.cluster.Now(), seen: map[string]bool{}}
	for ; at.partition >= 0; at = (tierCursor{partition: at.partition - 1}) {
		x := extents[at.partition]
		for at.offset = max(at.offset, x.from); at.offset < x.end; {
			rs, next, err := w.readOn(ctx, at)
			if err != nil {
				return page, err
			}
			for i, r := range rs {
				if l.full() {
					at.offset = r.Offset
					w.unlisted.Store(&unlisted{at, rs[i:], next})
					l.page.Next = at.String()
					return l.page, nil
				}
				l.take(r, x.done)
			}
			if next <= at.offset { // the end
				break
			}
			at.offset = next
		}
	}
	return l.page, nil
}

// readOn reads from a place in the tiers on: what the last page left, or an answer of the brokers.
func (w *firer) readOn(ctx context.Context, at tierCursor) (rs []*kgo.Record, next int64, err error) {
	if left := w.unlisted.Swap(nil); left != nil && left.at == at {
		return left.records, left.next, nil
	}
	return w.d.cluster.Fetch(ctx, w.d.cluster.DelayTopic(), at.partition, at.offset)
}
