package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Range returns a page of what is in one partition, whatever became of it. What is void is left out.
func (d *Driver) Range(ctx context.Context, q driver.RangeQuery) (driver.RangePage, error) {
	page := driver.RangePage{}
	q, err := q.Resolve()
	if err != nil {
		return page, err
	}
	t, err := d.registry.Existing(ctx, q.Topic)
	if err != nil {
		return page, err
	}
	from, to, err := d.span(ctx, t, q.Partition, q.From, q.To)
	if err != nil {
		return page, err
	}
	for from < to && page.Next.IsZero() {
		until := min(to, from+int64(q.Limit+1-len(page.Entries))) // with the one that begins the next page
		if err := d.cluster.ReadRange(ctx, d.cluster.MainTopic(t.Name), q.Partition, from, until, func(r *kgo.Record) {
			switch {
			case r.Attrs.IsControl() || record.IsLate(r):
			case len(page.Entries) == q.Limit:
				page.Next = record.RefOf(r)
			default:
				page.Entries = append(page.Entries, d.rangeEntry(t, r))
			}
		}); err != nil {
			return driver.RangePage{}, err
		}
		from = until
	}
	return page, nil
}

// span is the offsets of a partition between two positions.
func (d *Driver) span(ctx context.Context, t *registry.TopicState, partition int32, from, to driver.Position) (first,
	end int64, err error) {
	starts, ends, err := d.registry.Extent(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	if _, ok := ends[partition]; !ok {
		return 0, 0, driver.NewError(driver.ErrInvalid, fmt.Sprintf("topic %q has no partition %d", t.Name, partition),
			fmt.Sprintf("use 0 to %d", len(ends)-1), nil)
	}
	offset := func(p driver.Position, otherwise int64) (int64, error) {
		switch {
		case p.From == driver.FromEnd:
			return otherwise, nil
		case p.From == driver.FromBegin:
			return starts[partition], nil
		case p.From == driver.FromRef && p.Ref.Partition == partition && p.Ref.Sub == 0:
			return int64(p.Ref.Pos) - 1, nil
		}
		at, err := d.registry.Position(ctx, t, p)
		return at[partition], err
	}
	if first, err = offset(from, starts[partition]); err != nil {
		return 0, 0, err
	}
	end, err = offset(to, ends[partition])
	return max(first, starts[partition]), min(end, ends[partition]), err
}

func (d *Driver) rangeEntry(t *registry.TopicState, r *kgo.Record) driver.Entry {
	m, err := record.FromRecord(t.Name, r)
	if err == nil && d.cluster.Settings.RejectForeign && !record.Ours(r) {
		err = record.ErrForeign
	}
	if err != nil {
		return driver.Entry{Ref: record.RefOf(r), State: driver.StateInvalid, Problem: err.Error(),
			Raw: slices.Clone(r.Value)}
	}
	return driver.Entry{Message: m, Ref: record.RefOf(r)}
}
