package delay

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Page is a page of what is delayed or held for a topic.
func (d *Delays) Page(ctx context.Context, topic string, q driver.Query) (page driver.Page, err error) {
	w, err := d.looked(ctx)
	if w == nil || err != nil {
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

// readCursor is the place that a cursor names, which is one of ours; see driver.Query. That of none is before all.
func (w *firer) readCursor(text string) tierCursor {
	c := tierCursor{partition: int32(tiers*w.width) - 1}
	_, _ = fmt.Sscanf(text, "tier.%d.%d.0", &c.partition, &c.offset)
	return c
}

// unlisted is what a page left of the last answer of the brokers, for the page after it.
type unlisted struct {
	at      tierCursor
	records []*kgo.Record
	next    int64 // behind them
}

// browse lists what is delayed for a topic from a cursor on: tier by tier, in the order it came there.
func (w *firer) browse(ctx context.Context, topic string, q driver.Query) (page driver.Page, err error) {
	extents, err := w.extents(ctx, w.d.cluster.AnsweredEnds)
	if err != nil {
		return page, err
	}
	now, seen := w.d.cluster.Now(), map[string]bool{} // ids
	for at := w.readCursor(q.Cursor); at.partition >= 0; at = (tierCursor{partition: at.partition - 1}) {
		x := extents[at.partition]
		for at.offset = max(at.offset, x.from); at.offset < x.end; {
			rs, next, err := w.readOn(ctx, at)
			if err != nil {
				return driver.Page{}, err
			}
			for i, r := range rs {
				if len(page.Entries) == q.Limit || page.Scanned == q.MaxScan {
					at.offset = r.Offset
					w.unlisted.Store(&unlisted{at, rs[i:], next})
					page.Next = at.String()
					return page, nil
				}
				if r.Attrs.IsControl() {
					continue
				}
				page.Scanned++
				if e, ok := readLater(r); ok && !x.done.Has(r.Offset) && !seen[e.M.ID] && w.lives(e, topic, now) {
					seen[e.M.ID] = true
					page.Entries = append(page.Entries, e.Entry())
				}
			}
			if next <= at.offset { // the end
				break
			}
			at.offset = next
		}
	}
	return page, nil
}

// readOn reads from a place in the tiers on: what the last page left, or an answer of the brokers.
func (w *firer) readOn(ctx context.Context, at tierCursor) (rs []*kgo.Record, next int64, err error) {
	if left := w.unlisted.Swap(nil); left != nil && left.at == at {
		return left.records, left.next, nil
	}
	return w.d.cluster.Fetch(ctx, w.d.cluster.DelayTopic(), at.partition, at.offset)
}
