package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
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
	ends, err := d.Ends(ctx, topic)
	if from, to = max(from, 0), min(to, ends[partition]); err != nil || from >= to {
		return err
	}
	return d.ReadSpans(ctx, topic, map[int32][2]int64{partition: {from, to}}, use)
}

// Offsets asks where the partitions of a topic begin or end, as list says.
func (d *Cluster) Offsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error),
	topic string) (map[int32]int64, error) {
	found, err := Whole(list(ctx, topic))
	if err != nil {
		return nil, d.Unreached("reading offsets", err)
	}
	offsets := map[int32]int64{}
	for id, o := range found[topic] {
		offsets[id] = o.Offset
	}
	return offsets, nil
}

// Starts is where the partitions of a topic begin.
func (d *Cluster) Starts(ctx context.Context, topic string) (map[int32]int64, error) {
	return d.Offsets(ctx, d.Admin.ListStartOffsets, topic)
}

// Ends is where the partitions of a topic end, with what is not committed yet.
func (d *Cluster) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return d.Offsets(ctx, d.Admin.ListEndOffsets, topic)
}

// CommittedEnds is where the partitions of a topic end for who reads what is committed.
func (d *Cluster) CommittedEnds(ctx context.Context, topic string) (map[int32]int64, error) {
	return d.Offsets(ctx, d.Admin.ListCommittedOffsets, topic)
}

// AnsweredEnds are CommittedEnds behind all that was answered before the call: a transaction is answered a moment
// before its records can be read, and so is what lies behind one that is open. One that stays open for longer than a
// session is not waited for.
func (d *Cluster) AnsweredEnds(ctx context.Context, topic string) (map[int32]int64, error) {
	stored, err := d.Ends(ctx, topic)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(d.Settings.Session); ; {
		ends, err := d.CommittedEnds(ctx, topic)
		if err != nil {
			return nil, err
		}
		hidden := false
		for id, end := range stored {
			hidden = hidden || ends[id] < end
		}
		if !hidden || time.Now().After(deadline) || Pause(ctx, FetchWait/20) != nil {
			return ends, nil
		}
	}
}

// CommittedOf reads the offsets of a group, by its name on the brokers, and their metadata.
func (d *Cluster) CommittedOf(ctx context.Context, group, topic string) (map[int32]kadm.Offset, error) {
	found, err := Whole(d.Admin.FetchOffsetsForTopics(ctx, group, topic))
	if err != nil && !IsKafka(err, kerr.GroupIDNotFound) {
		return nil, d.Unreached("reading committed offsets", err)
	}
	return found.Offsets()[topic], nil
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
	starts, err := d.Starts(ctx, topic)
	if err != nil {
		return err
	}
	var offsets kadm.Offsets
	for id, at := range low {
		if start, ok := starts[id]; ok && at > start {
			offsets.AddOffset(topic, id, at, -1)
		}
	}
	_, err = d.Admin.DeleteRecords(ctx, offsets)
	return err
}

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
		case tries >= fetchTries || IsForbidden(err):
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
		starts, err := d.Starts(ctx, t.Topic) // it was trimmed beyond the offset
		return nil, max(offset, starts[p.Partition]), err
	case err != nil:
		return nil, offset, err
	}
	fp, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true,
		IsolationLevel: kgo.ReadCommitted(), Offset: offset, Topic: t.Topic, Partition: p.Partition}, got, d.unpack, nil)
	return fp.Records, next, fp.Err
}

// CheckLogs compares what is known of partitions with their logs, and cuts off what these have lost. It returns where
// they were cut.
func (d *Cluster) CheckLogs(ctx context.Context, topic string, sets map[int32]*offsets.Set) (map[int32]int64, error) {
	var req kadm.OffsetForLeaderEpochRequest
	for id, s := range sets {
		if s.Seen >= 0 {
			req.Add(topic, id, s.Seen)
		}
	}
	if len(req) == 0 {
		return nil, nil
	}
	answers, err := d.Admin.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		return nil, d.Unreached("asking where leaders of "+topic+" began", err)
	}
	cuts := map[int32]int64{}
	for id, s := range sets {
		a, ok := answers[topic][id]
		switch {
		case !ok:
		case a.Err != nil:
			return nil, d.Unreached("asking where leaders of "+topic+" began", a.Err)
		case a.EndOffset >= 0 && a.EndOffset < s.Known():
			s.Cut(a.EndOffset)
			s.Seen, cuts[id] = a.LeaderEpoch, a.EndOffset
		}
	}
	return cuts, nil
}
