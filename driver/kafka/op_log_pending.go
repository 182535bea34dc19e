package kafka

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
)

// Pending returns a page of what a group has read and not settled. Who holds it is known of this process only.
func (d *Driver) Pending(ctx context.Context, q driver.PendingQuery) (driver.PendingPage, error) {
	page := driver.PendingPage{}
	q, err := q.Resolve(d.caps)
	if err != nil {
		return page, err
	}
	if q.Instance != "" {
		return page, driver.NewError(driver.ErrUnsupported, "Kafka does not know which instance has what of a partition",
			"leave the instance out; Partitions tells who owns each", nil)
	}
	t, err := d.registry.Existing(ctx, q.Topic)
	if err != nil {
		return page, err
	}
	vs, err := d.groups.Look(ctx, t, q.Group)
	if err != nil {
		return page, err
	}
	defer vs.Close()
	all := vs.Pending(time.Now())
	slices.SortFunc(all, func(a, b consumer.Pending) int { return cmp.Compare(a.At, b.At) })
	for i, x := range all {
		if x.At <= q.Cursor {
			continue
		}
		page.Entries = append(page.Entries, x.PendingEntry)
		if len(page.Entries) == q.Limit && i+1 < len(all) {
			page.Next = q.Continue(d.caps, x.At)
			break
		}
	}
	return page, nil
}
