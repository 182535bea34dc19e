package kafka

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/internal/refusal"
)

// table is some partitions of a compacted topic, followed into memory: the newest record of each key.
type table struct {
	d     *Driver
	topic string
	// changed is told of each record, in order, by the one goroutine that follows. May be nil.
	changed func(r *kgo.Record)
	// applied is told when rows have changed. May be nil.
	applied func()

	mu     sync.Mutex
	rows   map[string]*kgo.Record
	next   map[int32]int64 // the next offset of each followed partition
	barred error           // why it may not be read
	moved  chan struct{}   // closed when next changes
	closed bool
	bare   bool // keeps no rows: whoever is told of changes keeps what he needs

	// leaves says which rows are not kept, all the same. May be nil.
	leaves func(r *kgo.Record) bool
	// row says where a row is that somebody else keeps, for claims; see contend. Nil: there are none.
	row      func(key string) int64
	contests *contests
}

// begin reads partitions of a topic from their start, and follows them.
func (d *Driver) begin(t *table, topic string, partitions []int32) *table {
	t.d, t.topic, t.rows, t.next, t.moved, t.contests = d, topic, map[string]*kgo.Record{}, map[int32]int64{}, make(chan struct{}), newContests(d.o.claims)
	if t.row == nil {
		t.row = func(string) int64 { return -1 }
	}
	from, taken := map[int32]kgo.Offset{}, map[string][]int32{}
	d.following.Lock()
	defer d.following.Unlock()
	d.tablesMu.Lock()
	for _, p := range partitions {
		t.next[p] = 0
		from[p] = kgo.NewOffset().AtStart()
		if d.tables[topicPartition{topic, p}] != nil {
			taken[topic] = append(taken[topic], p)
		}
		d.tables[topicPartition{topic, p}] = t
	}
	d.tablesMu.Unlock()
	d.reader.RemoveConsumePartitions(taken) // otherwise it would not be read from the start
	d.reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: from})
	return t
}

// acquaint lets the reader know a topic before it follows partitions of it: one that is added while kgo gets to know its topic may wait for a second.
func (d *Driver) acquaint(topic string) {
	d.following.Lock()
	defer d.following.Unlock()
	d.tablesMu.Lock()
	known := d.tables[topicPartition{topic, 0}] != nil
	d.tablesMu.Unlock()
	if !known {
		d.reader.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd()}})
		d.reader.RemoveConsumePartitions(map[string][]int32{topic: {0}})
	}
}

// watch follows one partition without keeping its rows.
func (d *Driver) watch(topic string, partition int32, changed func(*kgo.Record)) *table {
	return d.begin(&table{changed: changed, bare: true}, topic, []int32{partition})
}

// close ends the following.
func (t *table) close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	var ps []int32
	for p := range t.next {
		ps = append(ps, p)
	}
	close(t.moved)
	t.mu.Unlock()
	t.d.following.Lock()
	defer t.d.following.Unlock()
	t.d.tablesMu.Lock()
	ps = slices.DeleteFunc(ps, func(p int32) bool { return t.d.tables[topicPartition{t.topic, p}] != t }) // another follows it now
	for _, p := range ps {
		delete(t.d.tables, topicPartition{t.topic, p})
	}
	t.d.tablesMu.Unlock()
	t.d.reader.RemoveConsumePartitions(map[string][]int32{t.topic: ps})
}

// apply takes over fetched records of one partition.
func (t *table) apply(records []*kgo.Record) {
	for _, r := range records {
		if !t.contests.note(r, t.row) && t.changed != nil {
			t.changed(r)
		}
	}
	t.take(records)
	if t.applied != nil {
		t.applied()
	}
}

func (t *table) take(records []*kgo.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for _, r := range records {
		switch {
		case t.bare || r.Attrs.IsControl() || isLate(r) || bytes.HasPrefix(r.Key, []byte(claimPrefix)) || t.leaves != nil && t.leaves(r):
		case r.Value == nil:
			delete(t.rows, string(r.Key))
		default:
			t.rows[string(r.Key)] = r
		}
		t.next[r.Partition] = r.Offset + 1
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// bar notes that a partition may not be read, and why; nil when it may again.
func (t *table) bar(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.barred == nil && err == nil {
		return
	}
	t.barred = err
	close(t.moved)
	t.moved = make(chan struct{})
}

// sync waits until everything stored before the call is in the table, but for what is behind a transaction that has not ended.
func (t *table) sync(ctx context.Context) error {
	return t.reach(ctx, t.d.admin.ListCommittedOffsets)
}

// syncWhole is sync that waits for transactions to end too.
func (t *table) syncWhole(ctx context.Context) error {
	return t.reach(ctx, t.d.admin.ListEndOffsets)
}

// reach waits until what is stored before some offsets is in the table.
func (t *table) reach(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) error {
	ends, err := list(ctx, t.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return t.d.unreached("reading the end of "+t.topic, err)
	}
	for {
		t.mu.Lock()
		behind := false
		for p, next := range t.next {
			if end, ok := ends.Lookup(t.topic, p); ok && next < end.Offset {
				behind = true
			}
		}
		moved, closed, barred := t.moved, t.closed, t.barred
		t.mu.Unlock()
		switch {
		case closed:
			return refusal.Closed()
		case behind && barred != nil:
			return forbidden("reading "+t.topic, barred)
		case !behind:
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.d.done:
			return refusal.Closed()
		}
	}
}

// waitFor waits until a record that was stored by us is in the table.
func (t *table) waitFor(ctx context.Context, r *kgo.Record) error {
	for {
		t.mu.Lock()
		next, moved, closed := t.next[r.Partition], t.moved, t.closed
		t.mu.Unlock()
		if next > r.Offset {
			return nil
		}
		if closed {
			return refusal.Closed()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *table) get(key string) *kgo.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[key]
}

// all returns the rows, oldest first.
func (t *table) all() []*kgo.Record {
	t.mu.Lock()
	rows := make([]*kgo.Record, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	t.mu.Unlock()
	slices.SortFunc(rows, func(a, b *kgo.Record) int {
		if n := a.Timestamp.Compare(b.Timestamp); n != 0 {
			return n
		}
		return int(a.Offset - b.Offset)
	})
	return rows
}

// put stores rows, nil for a tombstone, and waits until they are in the table.
func (t *table) put(ctx context.Context, rs ...*kgo.Record) error {
	return errors.Join(t.putEach(ctx, rs)...)
}

// putEach is put with one error each.
func (t *table) putEach(ctx context.Context, rs []*kgo.Record) []error {
	errs := t.d.produceEach(ctx, rs)
	for i, r := range rs {
		if errs[i] == nil {
			errs[i] = t.waitFor(ctx, r)
		}
	}
	return errs
}

type topicPartition struct {
	topic     string
	partition int32
}

// readTables hands what is fetched to the tables until the driver ends.
func (d *Driver) readTables(ctx context.Context) {
	defer d.tasks.Done()
	for {
		fetches := d.reader.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		failed := false
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			failed = failed || p.Err != nil
			d.tablesMu.Lock()
			t := d.tables[topicPartition{p.Topic, p.Partition}]
			d.tablesMu.Unlock()
			switch {
			case t == nil:
			case isForbidden(p.Err):
				t.bar(p.Err)
			case len(p.Records) > 0:
				t.bar(nil)
				t.apply(p.Records)
			}
		})
		if failed { // kgo tries again by itself: do not spin meanwhile
			select {
			case <-ctx.Done():
				return
			case <-time.After(fetchWait):
			}
		}
	}
}
