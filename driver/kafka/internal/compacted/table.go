package compacted

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Tables follows tables with one client.
type Tables struct {
	cluster *cluster.Cluster
	Reader  *kgo.Client
	lockFor time.Duration // how long a lock on a row lasts

	following sync.Mutex // orders what the reader is told
	mu        sync.Mutex
	followed  map[TopicPartition]*Table
}

// NewTables makes the client that follows. Locks on rows last for so long, or for the default.
func NewTables(c *cluster.Cluster, locks time.Duration) (*Tables, error) {
	if locks <= 0 {
		locks = lockFor
	}
	reader, err := c.NewClient(kgo.FetchMaxWait(cluster.FetchWait), kgo.DisableFetchSessions())
	if err != nil {
		return nil, err
	}
	return &Tables{cluster: c, Reader: reader, lockFor: locks, followed: map[TopicPartition]*Table{}}, nil
}

// Table is some partitions of a compacted topic, followed into memory: the newest record of each key.
type Table struct {
	d     *Tables
	Topic string
	// Changed is told of each record, in order, by the one goroutine that follows. May be nil.
	Changed func(r *kgo.Record)
	// Applied is told when rows have changed. May be nil.
	Applied func()

	mu     sync.Mutex
	rows   map[string]*kgo.Record
	next   map[int32]int64 // the next offset of each followed partition
	barred error           // why it may not be read
	moved  chan struct{}   // closed when next changes
	closed bool
	bare   bool // keeps no rows: whoever is told of changes keeps what is needed

	// Leaves says which rows are not kept, all the same. May be nil.
	Leaves func(r *kgo.Record) bool
	// Row says where a row is that somebody else keeps, for locks; see contend. Nil: there are none.
	Row   func(key string) int64
	locks *rowLocks
}

// Begin reads partitions of a topic from their start, and follows them.
func (d *Tables) Begin(t *Table, topic string, partitions []int32) *Table {
	t.d, t.Topic, t.rows, t.next, t.moved, t.locks = d, topic, map[string]*kgo.Record{}, map[int32]int64{},
		make(chan struct{}), newRowLocks(d.lockFor)
	if t.Row == nil {
		t.Row = func(string) int64 { return -1 }
	}
	from, taken := map[int32]kgo.Offset{}, map[string][]int32{}
	d.following.Lock()
	defer d.following.Unlock()
	d.mu.Lock()
	for _, p := range partitions {
		t.next[p] = 0
		from[p] = kgo.NewOffset().AtStart()
		if d.followed[TopicPartition{topic, p}] != nil {
			taken[topic] = append(taken[topic], p)
		}
		d.followed[TopicPartition{topic, p}] = t
	}
	d.mu.Unlock()
	d.Reader.RemoveConsumePartitions(taken) // otherwise it would not be read from the start
	d.Reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	return t
}

// Acquaint lets the reader know a topic before it follows partitions of it: one that is added while kgo gets to know
// its topic may wait for a second.
func (d *Tables) Acquaint(topic string) {
	d.following.Lock()
	defer d.following.Unlock()
	d.mu.Lock()
	known := d.followed[TopicPartition{topic, 0}] != nil
	d.mu.Unlock()
	if !known {
		d.Reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd()}})
		d.Reader.RemoveConsumePartitions(map[string][]int32{topic: {0}})
	}
}

// Watch follows one partition without keeping its rows.
func (d *Tables) Watch(topic string, partition int32, changed func(*kgo.Record)) *Table {
	return d.Begin(&Table{Changed: changed, bare: true}, topic, []int32{partition})
}

// Close ends the following.
func (t *Table) Close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	ps := slices.Collect(maps.Keys(t.next))
	close(t.moved)
	t.mu.Unlock()
	t.d.following.Lock()
	defer t.d.following.Unlock()
	t.d.mu.Lock()
	// another follows it now
	ps = slices.DeleteFunc(ps, func(p int32) bool { return t.d.followed[TopicPartition{t.Topic, p}] != t })
	for _, p := range ps {
		delete(t.d.followed, TopicPartition{t.Topic, p})
	}
	t.d.mu.Unlock()
	t.d.Reader.RemoveConsumePartitions(map[string][]int32{t.Topic: ps})
}

// apply takes over fetched records of one partition.
func (t *Table) apply(records []*kgo.Record) {
	for _, r := range records {
		if !t.locks.note(r, t.Row) && t.Changed != nil {
			t.Changed(r)
		}
	}
	t.take(records)
	if t.Applied != nil {
		t.Applied()
	}
}

func (t *Table) take(records []*kgo.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, r := range records {
		switch {
		case t.bare || r.Attrs.IsControl() || record.IsLate(r) || bytes.HasPrefix(r.Key, []byte(lockPrefix)) ||
			t.Leaves != nil && t.Leaves(r):
		case r.Value == nil:
			delete(t.rows, string(r.Key))
		default:
			t.rows[string(r.Key)] = r
		}
		t.next[r.Partition] = r.Offset + 1
	}
	t.wake()
}

// wake lets those who await something look again.
func (t *Table) wake() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// bar notes that a partition may not be read, and why; nil when it may again.
func (t *Table) bar(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.barred == nil && err == nil {
		return
	}
	t.barred = err
	t.wake()
}

// Sync waits until everything stored before the call is in the table, but for what is behind a transaction that has not
// ended.
func (t *Table) Sync(ctx context.Context) error { return t.reach(ctx, t.d.cluster.CommittedEnds) }

// SyncAnswered is sync that also waits for what is behind a transaction, if that is not open for long.
func (t *Table) SyncAnswered(ctx context.Context) error {
	return t.reach(ctx, t.d.cluster.AnsweredEnds)
}

// SyncWhole is sync that waits for transactions to end too.
func (t *Table) SyncWhole(ctx context.Context) error { return t.reach(ctx, t.d.cluster.Ends) }

// reach waits until what is stored before some offsets is in the table.
func (t *Table) reach(ctx context.Context, list func(context.Context, string) (map[int32]int64, error)) error {
	ends, err := list(ctx, t.Topic)
	if err != nil {
		return err
	}
	return t.await(ctx, func() bool {
		for p, next := range t.next {
			if end, ok := ends[p]; ok && next < end {
				return false
			}
		}
		return true
	})
}

// await waits until something holds, which is asked with mu held whenever the table has moved on.
func (t *Table) await(ctx context.Context, holds func() bool) error {
	for {
		t.mu.Lock()
		over, moved, closed, barred := holds(), t.moved, t.closed, t.barred
		t.mu.Unlock()
		switch {
		case over:
			return nil
		case closed:
			return refusal.Closed()
		case barred != nil:
			return cluster.Forbidden("reading "+t.Topic, barred)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.d.cluster.Done():
			return refusal.Closed()
		}
	}
}

// WaitFor waits until a record that was stored by us is in the table.
func (t *Table) WaitFor(ctx context.Context, r *kgo.Record) error {
	return t.await(ctx, func() bool { return t.next[r.Partition] > r.Offset })
}

// Get returns a row, or nil.
func (t *Table) Get(key string) *kgo.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[key]
}

// All returns the rows.
func (t *Table) All() []*kgo.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.rows))
}

// Put stores rows, nil for a tombstone, and waits until they are in the table.
func (t *Table) Put(ctx context.Context, rs ...*kgo.Record) error {
	return cluster.Joined(t.putEach(ctx, rs)...)
}

// putEach is put with one error each.
func (t *Table) putEach(ctx context.Context, rs []*kgo.Record) []error {
	errs := t.d.cluster.ProduceEach(ctx, rs)
	for i, r := range rs {
		if errs[i] == nil {
			errs[i] = t.WaitFor(ctx, r)
		}
	}
	return errs
}

// TopicPartition is a partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// ReadTables hands what is fetched to the tables until the driver ends.
func (d *Tables) ReadTables(ctx context.Context) {
	for {
		fetches := d.Reader.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		failed := false
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			failed = failed || p.Err != nil
			d.mu.Lock()
			t := d.followed[TopicPartition{p.Topic, p.Partition}]
			d.mu.Unlock()
			switch {
			case t == nil:
			case cluster.IsForbidden(p.Err):
				t.bar(p.Err)
			case len(p.Records) > 0:
				t.bar(nil)
				t.apply(p.Records)
			}
		})
		if failed && cluster.Pause(ctx, cluster.FetchWait) != nil { // kgo tries again by itself: do not spin meanwhile
			return
		}
	}
}

// DeleteTopics removes Kafka topics, and what the clients remember of them: the same name may come back.
func (d *Tables) DeleteTopics(ctx context.Context, names ...string) error {
	_, err := d.cluster.Admin.DeleteTopics(ctx, names...)
	for err == nil { // brokers hear of it a little later
		found, listed := d.cluster.Admin.ListTopics(ctx, names...)
		left := listed == nil && slices.ContainsFunc(names, func(n string) bool { return found.Has(n) })
		if listed != nil || !left {
			break
		}
		err = cluster.Pause(ctx, cluster.FetchWait/5)
	}
	d.cluster.Client.PurgeTopicsFromClient(names...)
	d.Reader.PurgeTopicsFromClient(names...)
	return cluster.Unsure("the deletion", err)
}

// endsAtOnce is how many rows are deleted together.
const endsAtOnce = 1000

// Each reads the rows whose keys begin so, one after the other, those included that were replaced.
func (t *Table) Each(ctx context.Context, prefix string, use func(*kgo.Record)) error {
	return t.d.cluster.ReadAll(ctx, t.Topic, func(r *kgo.Record) {
		if r.Value != nil && strings.HasPrefix(string(r.Key), prefix) {
			use(r)
		}
	})
}

// EndEach deletes the rows whose keys begin so.
func (t *Table) EndEach(ctx context.Context, prefix string) error {
	var ends []*kgo.Record
	var failed error
	if err := t.Each(ctx, prefix, func(r *kgo.Record) {
		if ends = append(ends, record.Tombstone(r.Topic, r.Partition, string(r.Key))); len(ends) == endsAtOnce &&
			failed == nil {
			failed = t.d.cluster.Produce(ctx, ends...)
			ends = nil
		}
	}); err != nil {
		return err
	}
	if failed == nil {
		failed = t.Put(ctx, ends...)
	}
	return failed
}
