package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of reading.
const (
	spanBytes  = 1 << 20 // of one partition in one answer
	fetchTries = 10      // of a partition whose leader changes
)

// ReadSpans calls use with the records of some partitions: from the first offset up to but without the second, or the
// end. It asks the leaders directly, with the connections that there are.
func (d *Cluster) ReadSpans(ctx context.Context, topic string, spans map[int32][2]int64, use func(*kgo.Record)) error {
	for id, span := range spans {
		for at := span[0]; at < span[1]; {
			rs, next, err := d.Fetch(ctx, topic, id, at)
			if err != nil {
				return err
			}
			for _, r := range rs {
				if r.Offset < span[1] && !r.Attrs.IsControl() {
					use(r)
				}
			}
			if next <= at { // the end
				break
			}
			at = next
		}
	}
	return nil
}

// ReadAt calls use with the records at some offsets of some partitions, as far as they are there.
func (d *Cluster) ReadAt(ctx context.Context, topic string, wanted map[int32][]int64, use func(*kgo.Record)) error {
	for id, offsets := range wanted {
		slices.Sort(offsets)
		for len(offsets) > 0 { // one answer has all that lies close together
			rs, next, err := d.Fetch(ctx, topic, id, offsets[0])
			if err != nil {
				return err
			}
			for _, r := range rs {
				if _, ok := slices.BinarySearch(offsets, r.Offset); ok && !r.Attrs.IsControl() {
					use(r)
				}
			}
			behind, _ := slices.BinarySearch(offsets, max(next, offsets[0]+1))
			offsets = offsets[behind:]
		}
	}
	return nil
}

// Fetch reads records from an offset on, and returns where to go on: the same offset at the end. It asks again while
// the partition changes its leader.
func (d *Cluster) Fetch(ctx context.Context, topic string, partition int32, offset int64) (rs []*kgo.Record, next int64,
	err error) {
	for tries := 0; ; tries++ {
		found, err := d.Admin.ListTopics(ctx, topic) // mostly by what the client knows
		if err == nil {
			err = found[topic].Err
		}
		if err == nil {
			rs, next, err = d.fetchFrom(ctx, found[topic], partition, offset)
		}
		switch {
		case err == nil:
			return rs, next, nil
		case ctx.Err() != nil:
			return nil, offset, ctx.Err()
		case tries >= fetchTries:
			return nil, offset, d.Unreached("reading "+topic, err)
		}
		if err := Pause(ctx, FetchWait); err != nil {
			return nil, offset, err
		}
	}
}

// fetchFrom asks the leader of a partition once.
func (d *Cluster) fetchFrom(ctx context.Context, t kadm.TopicDetail, partition int32, offset int64) ([]*kgo.Record,
	int64, error) {
	p, ok := t.Partitions[partition]
	if !ok {
		return nil, offset, kerr.UnknownTopicOrPartition
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch, req.IsolationLevel = 10, 1, 8*spanBytes, -1, 1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = t.Topic, t.ID
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = p.Partition, offset, spanBytes, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer, err := d.Client.Broker(int(p.Leader)).Request(ctx, req)
	if err != nil {
		return nil, offset, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, offset, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, offset, driver.NewError(driver.ErrNotApplied, "a broker answered without the partition", "try again", nil)
	}
	got := &resp.Topics[0].Partitions[0]
	err = kerr.ErrorForCode(got.ErrorCode)
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange) && offset < got.LogStartOffset:
		return nil, got.LogStartOffset, nil // trimmed meanwhile
	case errors.Is(err, kerr.OffsetOutOfRange):
		starts, err := d.Offsets(ctx, d.Admin.ListStartOffsets, t.Topic) // it was trimmed beyond the offset
		return nil, max(offset, starts[p.Partition]), err
	case err != nil:
		return nil, offset, err
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true,
		IsolationLevel: kgo.ReadCommitted(), Offset: offset, Topic: t.Topic, Partition: p.Partition}, got, d.unpack, nil)
	return fp.Records, next, fp.Err
}
