package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
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
		tallies, err := d.groups.Tallies(ctx, t, g)
		if err != nil {
			return nil, err
		}
		owners, err := d.groups.Owners(ctx, t, g)
		if err != nil {
			return nil, err
		}
		for i := range all {
			id := int32(i)
			x := tallies[id]
			all[i].Groups = append(all[i].Groups, driver.PartitionGroup{Group: g, Owner: owners[id],
				Lag: max(0, ends[id]-x.Next), Pending: int64(x.Ready + x.Inflight + x.Waiting)})
		}
	}
	return all, nil
}
