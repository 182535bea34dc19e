package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Pending returns a page of what a group has read and not settled. Who holds it is known of this process only.
func (d *Driver) Pending(ctx context.Context, q driver.PendingQuery) (driver.PendingPage, error) {
	page := driver.PendingPage{}
	q, err := q.Resolve(d.caps)
	if err != nil {
		return page, err
	}
	if q.Instance != "" {
		return page, driver.NewError(driver.ErrUnsupported, "Kafka does not know which instance has what of a partition", "leave the instance out; Partitions tells who owns each", nil)
	}
	t, err := d.existing(ctx, q.Topic)
	if err != nil {
		return page, err
	}
	vs, err := d.look(ctx, t, q.Group)
	if err != nil {
		return page, err
	}
	defer vs.close()
	all := vs.pending(time.Now())
	slices.SortFunc(all, func(a, b pending) int { return cmp.Compare(a.at, b.at) })
	for i, x := range all {
		if x.at <= q.Cursor {
			continue
		}
		page.Entries = append(page.Entries, x.PendingEntry)
		if len(page.Entries) == q.Limit && i+1 < len(all) {
			page.Next = q.Continue(d.caps, x.at)
			break
		}
	}
	return page, nil
}

// pending is an entry with its place in a listing, which is also the cursor.
type pending struct {
	driver.PendingEntry
	at string
}

// pending lists what has been read by owners and is not settled. A visit also reads what they have not; that is left out.
func (vs *views) pending(now time.Time) (out []pending) {
	for _, v := range vs.all {
		v.mu.Lock()
		for id, p := range v.parts {
			for it := range p.items.all() {
				if it.state == gone || v.visit && it.side == "" && it.offset >= p.tally.Next {
					continue
				}
				e := driver.PendingEntry{Ref: it.ref, ID: it.msg.ID, Deliveries: it.lost + 1, State: it.entryState()}
				if c := it.claimed; c != nil {
					e.Instance, e.Idle = c.sub.o.Instance, max(0, now.Sub(c.until.Add(-c.sub.o.Lease)))
				}
				out = append(out, pending{e, fmt.Sprintf("%06d.%016d.%d", id, it.ref.Pos, it.ref.Sub)})
			}
		}
		v.mu.Unlock()
	}
	return out
}
