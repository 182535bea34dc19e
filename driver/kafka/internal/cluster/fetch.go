package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of reading.
const (
	spanBytes = 1 << 20 // of one partition in one answer
	SpanTries = 10      // of a partition whose leader changes
)

// ReadSpans calls use with the records of some partitions: from the first offset up to but without the second, or the
// end. It asks the leaders directly, with the connections that there are.
func (d *Cluster) ReadSpans(ctx context.Context, topic string, spans map[int32][2]int64, use func(*kgo.Record)) error {
	left := maps.Clone(spans)
	for tries := 0; len(left) > 0; tries++ {
		found, err := d.Admin.ListTopics(ctx, topic)
		if err == nil {
			err = found[topic].Err
		}
		if err == nil {
			err = d.readFromLeaders(ctx, found[topic], left, use)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && tries >= SpanTries {
			return d.Unreached("reading "+topic, err)
		}
		if err != nil {
			if err := Pause(ctx, FetchWait); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadAt calls use with the records at some offsets of some partitions, as far as they are there.
func (d *Cluster) ReadAt(ctx context.Context, topic string, wanted map[int32][]int64, use func(*kgo.Record)) error {
	if len(wanted) == 0 {
		return nil
	}
	found, err := d.Admin.ListTopics(ctx, topic)
	if err == nil {
		err = found[topic].Err
	}
	if err != nil {
		return d.Unreached("reading "+topic, err)
	}
	for id, offsets := range wanted {
		slices.Sort(offsets)
		for len(offsets) > 0 { // one answer has all that lies close together
			rs, next, err := d.FetchAt(ctx, found[topic], found[topic].Partitions[id], offsets[0])
			if err != nil {
				return d.Unreached("reading "+topic, err)
			}
			for _, r := range rs {
				if _, ok := slices.BinarySearch(offsets, r.Offset); ok && !r.Attrs.IsControl() {
					use(r)
				}
			}
			next = max(next, offsets[0]+1)
			offsets = offsets[sort.Search(len(offsets), func(i int) bool { return offsets[i] >= next }):]
		}
	}
	return nil
}

func (d *Cluster) readFromLeaders(ctx context.Context, t kadm.TopicDetail, left map[int32][2]int64,
	use func(*kgo.Record)) error {
	for _, p := range t.Partitions {
		for {
			span, reading := left[p.Partition]
			if !reading {
				break
			}
			if span[0] >= span[1] {
				delete(left, p.Partition)
				break
			}
			got, next, err := d.FetchAt(ctx, t, p, span[0])
			if err != nil {
				return err
			}
			for _, r := range got {
				if r.Offset < span[1] && !r.Attrs.IsControl() {
					use(r)
				}
			}
			if next <= span[0] { // the end
				next = span[1]
			}
			left[p.Partition] = [2]int64{next, span[1]}
		}
	}
	return nil
}

// FetchAt reads records from an offset on, and returns where to go on: the same offset at the end.
func (d *Cluster) FetchAt(ctx context.Context, t kadm.TopicDetail, p kadm.PartitionDetail, offset int64) ([]*kgo.Record,
	int64, error) {
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
		return d.restart(ctx, t.Topic, p.Partition, offset)
	case err != nil:
		return nil, offset, err
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true,
		IsolationLevel: kgo.ReadCommitted(), Offset: offset, Topic: t.Topic, Partition: p.Partition}, got, d.unpack, nil)
	return fp.Records, next, fp.Err
}

// restart goes on at the start of a partition that was trimmed beyond an offset.
func (d *Cluster) restart(ctx context.Context, topic string, partition int32, offset int64) ([]*kgo.Record, int64,
	error) {
	starts, err := d.Admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, offset, err
	}
	start, _ := starts.Lookup(topic, partition)
	return nil, max(offset, start.Offset), nil
}

// Pause waits between two looks at something that others change.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
