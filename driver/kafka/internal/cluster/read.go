package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// ReadOne returns the record at an offset, or nil when there is none.
func (d *Cluster) ReadOne(ctx context.Context, topic string, partition int32, offset int64) (found *kgo.Record,
	err error) {
	if offset < 0 || partition < 0 {
		return nil, nil
	}
	err = d.ReadRange(ctx, topic, partition, offset, offset+1, func(r *kgo.Record) { found = r })
	return found, err
}

// ReadRange calls use with the records of a partition from one offset up to but without another.
func (d *Cluster) ReadRange(ctx context.Context, topic string, partition int32, from, to int64,
	use func(*kgo.Record)) error {
	ends, err := d.Offsets(ctx, d.Admin.ListEndOffsets, topic)
	if from, to = max(from, 0), min(to, ends[partition]); err != nil || from >= to {
		return err
	}
	return d.ReadSpans(ctx, topic, map[int32][2]int64{partition: {from, to}}, use)
}

// Offsets asks where the partitions of a topic begin or end, as list says.
func (d *Cluster) Offsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error),
	topic string) (map[int32]int64, error) {
	found, err := list(ctx, topic)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, d.Unreached("reading offsets", err)
	}
	offsets := map[int32]int64{}
	for id, o := range found[topic] {
		offsets[id] = o.Offset
	}
	return offsets, nil
}

// CommittedOf reads the offsets of a group, by its name on the brokers, and their metadata.
func (d *Cluster) CommittedOf(ctx context.Context, group, topic string) (map[int32]kadm.Offset, error) {
	found, err := d.Admin.FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = found.Error()
	}
	if err != nil && !IsKafka(err, kerr.GroupIDNotFound) {
		return nil, d.Unreached("reading committed offsets", err)
	}
	offsets := map[int32]kadm.Offset{}
	for p, o := range found[topic] {
		offsets[p] = o.Offset
	}
	return offsets, nil
}

// IsNotFound reports whether something does not exist.
func IsNotFound(err error) bool { return errors.Is(err, driver.ErrNotFound) }

// ReadAll calls use with all records of a topic.
func (d *Cluster) ReadAll(ctx context.Context, topic string, use func(*kgo.Record)) error {
	n, err := d.PartitionsOf(ctx, topic)
	if err != nil {
		return err
	}
	spans := map[int32][2]int64{}
	for _, id := range Span(n) {
		spans[id] = [2]int64{0, 1 << 62}
	}
	return d.ReadSpans(ctx, topic, spans, use)
}

// DeleteBefore deletes the records of partitions before offsets.
func (d *Cluster) DeleteBefore(ctx context.Context, topic string, low map[int32]int64) error {
	if len(low) == 0 {
		return nil
	}
	starts, err := d.Offsets(ctx, d.Admin.ListStartOffsets, topic)
	if err != nil {
		return err
	}
	var offsets kadm.Offsets
	for id, at := range low {
		if start, ok := starts[id]; ok && at > start {
			offsets.AddOffset(topic, id, at, -1)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	_, err = d.Admin.DeleteRecords(ctx, offsets)
	return err
}
