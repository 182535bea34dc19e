package kafka

import (
	"cmp"
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// readOne returns the record at an offset, or nil when there is none.
func (d *Driver) readOne(ctx context.Context, topic string, partition int32, offset int64) (found *kgo.Record, err error) {
	if offset < 0 || partition < 0 {
		return nil, nil
	}
	err = d.readRange(ctx, topic, partition, offset, offset+1, func(r *kgo.Record) { found = r })
	return found, err
}

// readRange calls use with the records of a partition from one offset up to but without another.
func (d *Driver) readRange(ctx context.Context, topic string, partition int32, from, to int64, use func(*kgo.Record)) error {
	starts, err := d.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return d.unreached("reading offsets", err)
	}
	ends, err := d.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return d.unreached("reading offsets", err)
	}
	start, ok := starts.Lookup(topic, partition)
	end, _ := ends.Lookup(topic, partition)
	from, to = max(from, start.Offset), min(to, end.Offset)
	if !ok || from >= to {
		return nil
	}
	return d.readSpans(ctx, topic, map[int32][2]int64{partition: {from, to}}, use)
}

// commitIdle sets the offsets of a group without members, with their metadata.
func (d *Driver) commitIdle(ctx context.Context, t *topicState, group string, at map[int32]int64, meta map[int32]string) error {
	var offsets kadm.Offsets
	for p, o := range at {
		offsets.Add(kadm.Offset{Topic: d.mainTopic(t.name), Partition: p, At: o, LeaderEpoch: -1, Metadata: cmp.Or(meta[p], cleanText)})
	}
	return d.commitAsNobody(ctx, t, group, offsets)
}

// commitAsNobody commits for a group without members.
func (d *Driver) commitAsNobody(ctx context.Context, t *topicState, group string, offsets kadm.Offsets) error {
	resp, err := d.admin.CommitOffsets(ctx, d.groupID(t.name, group), offsets)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return driver.NewError(driver.ErrConflict, "the position of group "+group+" cannot be set", "stop its consumers first", err)
	}
	return nil
}

// committed reads the offsets of a group and their metadata.
func (d *Driver) committed(ctx context.Context, t *topicState, group string) (map[int32]kadm.Offset, error) {
	return d.committedOf(ctx, d.groupID(t.name, group), d.mainTopic(t.name))
}

func (d *Driver) committedOf(ctx context.Context, group, topic string) (map[int32]kadm.Offset, error) {
	found, err := d.admin.FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = found.Error()
	}
	if err != nil && !isKafka(err, kerr.GroupIDNotFound) {
		return nil, d.unreached("reading committed offsets", err)
	}
	offsets := map[int32]kadm.Offset{}
	for p, o := range found[topic] {
		offsets[p] = o.Offset
	}
	return offsets, nil
}

func isNotFound(err error) bool { return errors.Is(err, driver.ErrNotFound) }
