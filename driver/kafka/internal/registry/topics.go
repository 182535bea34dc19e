package registry

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/envelope"
)

// CheckWidth refuses a topic that has fewer partitions than a group was made for: what waits in the others would never
// be seen.
func (d *Registry) CheckWidth(ctx context.Context, t *TopicState, group string) error {
	had, err := d.cluster.PartitionsOf(ctx, d.cluster.RetryTopic(t.Name, group))
	if err != nil || had <= t.Partitions {
		return err
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q has %d partitions, and its group %q was made for %d",
		t.Name, t.Partitions, group, had), d.WidenHint(t.Name, had), nil)
}

// WidenHint is how partitions are added to a topic.
func (d *Registry) WidenHint(topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --alter --topic %s --partitions %d",
		d.cluster.Settings.Brokers[0], d.cluster.MainTopic(topic), partitions)
}

// PartitionsNow are those of a topic, with any that somebody added since we know it.
func (d *Registry) PartitionsNow(ctx context.Context, t *TopicState) ([]int32, error) {
	n, err := d.cluster.PartitionsOf(ctx, t.Main)
	return cluster.Span(max(n, t.Partitions)), err
}

// Announce tells everybody, for good, what the presence of a row says.
func (d *Registry) Announce(ctx context.Context, key string) error {
	if d.Meta.Get(key) != nil {
		return nil
	}
	return d.Put(ctx, key, struct{}{})
}

// EndOpen ends the transactions that earlier owners of partitions left open: their commits are unstable, and hold up
// the next owner.
func (d *Registry) EndOpen(ctx context.Context, group string, ids []int32) {
	if d.Meta.Get(cluster.TransactionsKey) == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.cluster.Settings.Session)
	defer cancel()
	var ending sync.WaitGroup
	for _, id := range ids {
		ending.Go(func() {
			_ = d.cluster.Fence(ctx, cluster.TransactionalID(group, id)) // then brokers end it, a little later
		})
	}
	ending.Wait()
}

// CommitIdle sets the offsets of a group without members, with their metadata.
func (d *Registry) CommitIdle(ctx context.Context, t *TopicState, group string, at map[int32]int64,
	meta map[int32]string) error {
	var all kadm.Offsets
	for p, o := range at {
		all.Add(kadm.Offset{Topic: t.Main, Partition: p, At: o, LeaderEpoch: -1,
			Metadata: cmp.Or(meta[p], offsets.CleanText)})
	}
	return d.CommitAsNobody(ctx, t, group, all)
}

// CommitAsNobody commits for a group without members.
func (d *Registry) CommitAsNobody(ctx context.Context, t *TopicState, group string, offsets kadm.Offsets) error {
	_, err := cluster.Whole(d.cluster.Admin.CommitOffsets(ctx, d.cluster.GroupID(t.Name, group), offsets))
	if err != nil {
		return driver.NewError(driver.ErrConflict, "the position of group "+group+" cannot be set",
			"stop its consumers first", err)
	}
	return nil
}

// Committed reads the offsets of a group and their metadata.
func (d *Registry) Committed(ctx context.Context, t *TopicState, group string) (map[int32]kadm.Offset, error) {
	return d.cluster.CommittedOf(ctx, d.cluster.GroupID(t.Name, group), t.Main)
}

// PartitionFor chooses a partition: by key, or in turn.
func (d *Registry) PartitionFor(t *TopicState, key string) int32 {
	if key != "" {
		return record.PartitionOf(key, t.Partitions)
	}
	return t.InTurn()
}

// InTurn is the next partition.
func (t *TopicState) InTurn() int32 {
	return int32(atomic.AddUint32(&t.spread, 1) % uint32(t.Partitions))
}

// Extent is where the partitions of a topic begin and end, whatever is kept on purpose.
func (d *Registry) Extent(ctx context.Context, t *TopicState) (starts, ends map[int32]int64, err error) {
	if starts, err = d.cluster.Starts(ctx, t.Main); err != nil {
		return nil, nil, err
	}
	if ends, err = d.cluster.CommittedEnds(ctx, t.Main); err != nil {
		return nil, nil, err
	}
	for id, end := range ends {
		starts[id] = min(starts[id], end)
	}
	return starts, ends, nil
}

// DueNow is what was delayed or held in its topic.
func (d *Registry) DueNow(t *TopicState, msg *driver.Message) *kgo.Record {
	r := record.ToRecord(t.Main, d.PartitionFor(t, msg.Key), msg)
	r.Headers = append(r.Headers, record.State{Cause: driver.CauseReplay, Offset: -1}.Header())
	return r
}

// InvalidRows follows the broken records of a topic from the first look on.
func (d *Registry) InvalidRows(ctx context.Context, t *TopicState) (*compacted.Index, error) {
	return d.tables.IndexOf(ctx, &t.Invalid, d.cluster.InvalidTopic(t.Name),
		func(key string) (list, name string) { return InvalidList, key })
}

// InvalidList is the only listing of broken records.
const InvalidList = "invalid"

// InvalidRecord keeps a broken record whole.
func (d *Registry) InvalidRecord(topic string, r *kgo.Record, problem error) *kgo.Record {
	headers := append([]kgo.RecordHeader{{Key: record.ProblemHeader, Value: []byte(problem.Error())},
		record.State{Offset: r.Offset, Ref: record.RefOf(r)}.Header()}, r.Headers...)
	return &kgo.Record{Topic: d.cluster.InvalidTopic(topic), Key: []byte(record.RefOf(r).String()),
		Value: append([]byte{}, r.Value...), Headers: headers}
}

// DeadLetters follows the dead letters of a topic from the first look on.
func (d *Registry) DeadLetters(ctx context.Context, t *TopicState) (*compacted.Index, error) {
	return d.tables.IndexOf(ctx, &t.Dead, d.cluster.DeadTopic(t.Name), record.DeadList)
}

// DeadRecord is a dead letter. The key makes a repeat harmless.
func (d *Registry) DeadRecord(dl *driver.DeadLetter) *kgo.Record {
	group, id := dl.Origin.Group, dl.Message.ID
	return &kgo.Record{Topic: d.cluster.DeadTopic(dl.Origin.Topic),
		Partition: record.PartitionOf(record.DeadName(group, id), d.cluster.Settings.InternalPartitions),
		Key:       []byte(record.DeadKey(group, id, dl.Rounds)), Value: envelope.AppendDeadLetter(nil, dl)}
}

// EachDead reads all dead letters of a group.
func (d *Registry) EachDead(ctx context.Context, t *TopicState, group string, use func(driver.Entry)) error {
	x, err := d.DeadLetters(ctx, t)
	if err == nil {
		err = x.SyncAnswered(ctx)
	}
	if err != nil || x.Count(group) == 0 {
		return err
	}
	return x.Each(ctx, record.DeadName(group, ""), func(r *kgo.Record) {
		if e, ok := record.DeadEntry(t.Name, r); ok && x.Current(r) {
			use(e)
		}
	})
}

// ReadDead turns records of dead letters of a topic into entries.
func ReadDead(t *TopicState) func(*kgo.Record) (driver.Entry, bool) {
	return func(r *kgo.Record) (driver.Entry, bool) { return record.DeadEntry(t.Name, r) }
}
