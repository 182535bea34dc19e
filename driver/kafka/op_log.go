package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

var _ driver.Log = (*Driver)(nil)

// Partitions tells of each partition of a topic what it holds, and how far each group has come in it: of our own as it
// is, of others as their owners said with their last commit.
func (d *Driver) Partitions(ctx context.Context, topic string) ([]driver.Partition, error) {
	t, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
	if err != nil {
		return nil, err
	}
	starts, ends, err := d.registry.Extent(ctx, t)
	if err != nil {
		return nil, err
	}
	all := make([]driver.Partition, len(ends))
	for i := range all {
		id := int32(i)
		all[i] = driver.Partition{Partition: id, Entries: ends[id] - starts[id]}
		if all[i].Entries > 0 {
			all[i].First, all[i].Last = record.RefAt(id, starts[id]), record.RefAt(id, ends[id]-1)
		}
	}
	for _, g := range d.registry.GroupsOf(topic) {
		tallies, owners, err := d.groups.Shares(ctx, t, g)
		if err != nil {
			return nil, err
		}
		for i := range all {
			id, x := int32(i), tallies[int32(i)]
			all[i].Groups = append(all[i].Groups, driver.PartitionGroup{Group: g, Owner: owners[id],
				Lag: max(0, ends[id]-x.Next), Pending: int64(x.Ready + x.Inflight + x.Waiting)})
		}
	}
	return all, nil
}

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
	found, next := behind(q.Cursor, vs.Pending(time.Now()), q.Limit, func(x consumer.Pending) string { return x.At })
	for _, x := range found {
		page.Entries = append(page.Entries, x.PendingEntry)
	}
	page.Next = q.Continue(d.caps, next)
	return page, nil
}

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
		if err := d.cluster.ReadRange(ctx, t.Main, q.Partition, from, until, func(r *kgo.Record) {
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

// replayAtOnce is how many records are read, and stored again, at the same time.
const replayAtOnce = 500

// Replay adds what a group has settled of what is kept to its retry log, in the order it was published, like dead
// letters that are replayed. What is not settled, dead or past its TTL is left as it is. A replay that was broken off
// may be repeated: what it has added and is not settled is not added again.
func (d *Driver) Replay(ctx context.Context, topic, group string, o driver.ReplayOptions) (driver.ResetReport, error) {
	report := driver.ResetReport{}
	t, err := d.group(ctx, o.Check(topic, group), topic, group)
	if err != nil || d.registry.RowOf(t).Config.Keep <= 0 {
		return report, err
	}
	if o.From.From == driver.FromEnd {
		o.From = registry.BeginPosition
	}
	from, err := d.registry.Position(ctx, t, o.From)
	if err != nil {
		return report, err
	}
	to, err := d.registry.Position(ctx, t, o.To)
	if err != nil {
		return report, err
	}
	x, err := d.groups.SettledOf(ctx, t, group)
	if err != nil {
		return report, err
	}
	for _, id := range slices.Sorted(maps.Keys(x.Parts)) {
		for at := from[id]; at < min(to[id], x.Parts[id].Next); at += replayAtOnce {
			rs, err := x.Again(ctx, id, at, min(at+replayAtOnce, to[id], x.Parts[id].Next))
			if err == nil && !o.DryRun {
				err = d.replayAll(ctx, t, group, rs)
			}
			if err != nil {
				return report, err
			}
			report.Replayed += len(rs)
		}
	}
	return report, nil
}

// replayAll stores records in a retry log. Those of one call are of one partition of the main topic.
func (d *Driver) replayAll(ctx context.Context, t *registry.TopicState, group string, rs []*kgo.Record) error {
	if len(rs) == 0 {
		return nil
	}
	if err := d.cluster.Produce(ctx, rs...); err != nil {
		return err
	}
	return d.groups.Taken(ctx, t, group, rs[len(rs)-1])
}

// Retain refuses every bound but none: Kafka itself would remove what groups have not settled, uncounted.
func (d *Driver) Retain(ctx context.Context, topic string, r driver.Retention) error {
	if err := r.Check(); err != nil {
		return err
	}
	if _, err := d.Retention(ctx, topic); err != nil {
		return err
	}
	if r != (driver.Retention{}) {
		return errNoRetention()
	}
	return nil
}

// Retention is none: what all groups have settled goes, or Keep later.
func (d *Driver) Retention(ctx context.Context, topic string) (driver.Retention, error) {
	_, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
	return driver.Retention{}, err
}

// Trim has no retention to apply.
func (d *Driver) Trim(ctx context.Context, topic string) (driver.TrimReport, error) {
	if _, err := d.Retention(ctx, topic); err != nil {
		return driver.TrimReport{}, err
	}
	return driver.TrimReport{}, errNoRetention()
}

func errNoRetention() error {
	return driver.NewError(driver.ErrUnsupported, "topics on Kafka have no retention but Keep: what all groups have "+
		"settled goes within half a minute, or Keep later",
		"set Keep of the topic, and MaxMessages or MaxBytes to bound what is not settled", nil)
}
