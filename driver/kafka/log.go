package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

var _ driver.Log = (*Driver)(nil)

// Partitions tells of each partition of a topic what it holds, and how far each group has come in it: of our own as it is, of others as their owners said with
// their last commit.
func (d *Driver) Partitions(ctx context.Context, topic string) ([]driver.Partition, error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return nil, err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return nil, err
	}
	starts, ends, err := d.extent(ctx, t)
	if err != nil {
		return nil, err
	}
	all := make([]driver.Partition, len(ends))
	for i := range all {
		id := int32(i)
		all[i] = driver.Partition{Partition: id, Entries: ends[id] - starts[id]}
		if all[i].Entries > 0 {
			all[i].First, all[i].Last = refAt(id, starts[id]), refAt(id, ends[id]-1)
		}
	}
	for _, g := range d.groupsOf(topic) {
		tallies, err := d.tallies(ctx, t, g)
		if err != nil {
			return nil, err
		}
		owners, err := d.owners(ctx, t, g)
		if err != nil {
			return nil, err
		}
		for i := range all {
			id := int32(i)
			x := tallies[id]
			all[i].Groups = append(all[i].Groups, driver.PartitionGroup{Group: g, Owner: owners[id], Lag: max(0, ends[id]-x.Next), Pending: int64(x.Ready + x.Inflight + x.Waiting)})
		}
	}
	return all, nil
}

// refAt is that of the record at an offset of a main topic.
func refAt(partition int32, offset int64) driver.Ref {
	return refOf(&kgo.Record{Partition: partition, Offset: offset})
}

// extent is where the partitions of a topic begin and end, whatever is kept on purpose.
func (d *Driver) extent(ctx context.Context, t *topicState) (starts, ends map[int32]int64, err error) {
	name := d.mainTopic(t.name)
	found, err := d.admin.ListStartOffsets(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, nil, d.unreached("reading offsets", err)
	}
	if ends, err = d.position(ctx, t, endPosition); err != nil {
		return nil, nil, err
	}
	starts = map[int32]int64{}
	for id := range ends {
		start, _ := found.Lookup(name, id)
		starts[id] = min(start.Offset, ends[id])
	}
	return starts, ends, nil
}

// tallies are what is counted in each partition of a group.
func (d *Driver) tallies(ctx context.Context, t *topicState, group string) (map[int32]tally, error) {
	at, err := d.committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	all := map[int32]tally{}
	for id, o := range at {
		all[id] = readTally(o.Metadata, o.At)
	}
	if m := d.memberIn(t.name, group); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for id, p := range m.parts {
			all[id] = p.current()
		}
	}
	return all, nil
}

// owners names who reads each partition of a group: in this process by its instances, in others as Kafka knows them.
func (d *Driver) owners(ctx context.Context, t *topicState, group string) (map[int32]string, error) {
	id := d.groupID(t.name, group)
	found, err := d.admin.DescribeGroups(ctx, id)
	if err != nil {
		return nil, d.unreached("asking for the members of a group", err)
	}
	owners := map[int32]string{}
	for _, x := range found[id].Members {
		assigned, ok := x.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, at := range assigned.Topics {
			for _, p := range at.Partitions {
				owners[p] = x.MemberID
			}
		}
	}
	if m := d.memberIn(t.name, group); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for p := range m.parts {
			owners[p] = m.instances()
		}
	}
	return owners, nil
}

// instances are the names of those who consume in this process.
func (m *member) instances() string {
	var names []string
	for s := range m.subs {
		names = append(names, s.o.Instance)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
