package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// partition is one that this process owns for a group, or visits. Guarded by the member's mu.
type partition struct {
	id      int32
	m       *member
	done    *doneSet
	end     int64 // of the main topic when it was assigned
	items   map[string]*item
	pending []*item // from the side log, not yet in the queue, by order
	side    *table
	epoch   int64
	loaded  bool
	lost    bool // no longer ours
	dirty   bool // something is done that is not committed

	found  map[string]*kgo.Record // the side log while it is read
	newest int64                  // the highest epoch in it
}

// epochKey marks in a side log who owns it from here on.
const epochKey = "e"

func mainKey(offset int64) string { return fmt.Sprintf("m/%d", offset) }

// load reads what the group left unfinished, before anything is fetched from the main topic.
func (m *member) load(ctx context.Context, id int32, at int64, metadata string) (*partition, error) {
	p := &partition{id: id, m: m, done: newDoneSet(at), items: map[string]*item{}, found: map[string]*kgo.Record{}}
	p.done.readMetadata(metadata)
	p.side = m.d.follow(m.sideName, []int32{id}, p.sideChanged)
	if err := p.side.sync(ctx); err != nil {
		p.side.close()
		return nil, err
	}
	ends, err := m.d.admin.ListEndOffsets(ctx, m.mainName)
	if err != nil {
		p.side.close()
		return nil, err
	}
	end, _ := ends.Lookup(m.mainName, id)
	m.mu.Lock()
	p.end, p.epoch, p.loaded = end.Offset, p.newest+1, true
	for key, r := range p.found {
		if it := p.restore(key, r); it != nil {
			p.pending = append(p.pending, it)
		}
	}
	p.found = nil
	slices.SortFunc(p.pending, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.offset, b.offset), cmp.Compare(a.ref.Pos, b.ref.Pos))
	})
	if at >= p.end {
		p.release(p.end)
	}
	m.mu.Unlock()
	if m.visiting {
		return p, nil
	}
	marker := &kgo.Record{Topic: m.sideName, Partition: id, Key: []byte(epochKey), Value: []byte{'e'},
		Headers: []kgo.RecordHeader{state{Epoch: p.epoch, Offset: -1}.header()}}
	if err := m.d.produce(ctx, marker); err != nil {
		p.side.close()
		return nil, err
	}
	return p, nil
}

// sideChanged is told of each record of the side log. What an earlier owner wrote after a later one began is void.
func (p *partition) sideChanged(r *kgo.Record) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	key := string(r.Key)
	s, ok := stateOf(r)
	if !p.loaded {
		switch {
		case ok && !s.Insert && s.Epoch < p.newest:
		case key == epochKey:
			p.newest = max(p.newest, s.Epoch)
		case r.Value == nil:
			delete(p.found, key)
		default:
			p.found[key] = r
		}
		return
	}
	if ok && s.Insert && !p.lost && r.Value != nil && p.items[key] == nil {
		if it := p.restore(key, r); it != nil {
			it.order = p.done.next
			p.m.add(it)
		}
	}
}

// restore turns a record of the side log into an item. What it was in the main topic is done.
func (p *partition) restore(key string, r *kgo.Record) *item {
	s, ok := stateOf(r)
	if !ok {
		return nil
	}
	msg, err := envelope.Decode(r.Value)
	if err != nil {
		return nil // stays in the log, for an operator to see
	}
	msg.Topic = p.m.topic.name
	it := &item{p: p, offset: s.Offset, order: s.Order, side: key, msg: msg, ref: s.Ref, attempts: s.Attempts, lost: s.Lost, rounds: s.Rounds,
		cause: s.Cause, spared: s.Spared, loose: s.Loose, tail: s.Tail, inLane: -1}
	if it.ref.IsZero() {
		it.ref = driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: subSide}
	}
	it.history, _ = envelope.DecodeHistory(s.History)
	if s.After > 0 {
		it.due = r.Timestamp.Add(s.After + time.Millisecond) // the broker's time is cut to milliseconds
	}
	if s.Offset >= 0 {
		p.done.set(s.Offset)
		p.dirty = true
	}
	p.items[key] = it
	return it
}

// release puts restored items into the queue that come before an offset of the main topic.
func (p *partition) release(before int64) {
	for len(p.pending) > 0 && p.pending[0].order <= before {
		if it := p.pending[0]; p.items[it.side] == it {
			p.m.add(it)
		}
		p.pending = p.pending[1:]
	}
	if before >= p.end {
		p.end = -1
		for _, it := range p.pending {
			p.m.add(it)
		}
		p.pending = nil
	}
}

// feed takes a fetched record, and returns it when it cannot be decoded.
func (p *partition) feed(r *kgo.Record) (bad *kgo.Record, problem error) {
	p.done.skipTo(r.Offset)
	p.done.next = r.Offset + 1
	if len(p.pending) > 0 {
		p.release(r.Offset)
	}
	defer func() {
		if p.end >= 0 && r.Offset+1 >= p.end {
			p.release(p.end)
		}
	}()
	if p.done.has(r.Offset) {
		p.dirty = true
		return nil, nil
	}
	msg, err := fromRecord(p.m.topic.name, r)
	if err != nil {
		return r, err
	}
	it := &item{p: p, offset: r.Offset, order: r.Offset, msg: msg, ref: refOf(r), inLane: -1}
	if s, ok := stateOf(r); ok {
		it.cause = s.Cause
	}
	if it.cause == driver.CauseFirst && r.Offset < p.done.replay {
		it.cause = driver.CauseReplay
	}
	switch {
	case p.done.heldBefore[r.Offset]: // its holder crashed
		it.cause = driver.CauseLeaseExpired
		it.lost++
		p.m.suspects = append(p.m.suspects, it)
	case p.done.returnedBefore[r.Offset]:
		it.cause = driver.CauseReleased
	}
	p.items[mainKey(r.Offset)] = it
	p.m.add(it)
	return nil, nil
}

// forget is told that an item is settled.
func (p *partition) forget(it *item) {
	if it.side != "" {
		delete(p.items, it.side)
	}
	if it.offset >= 0 {
		delete(p.items, mainKey(it.offset))
		p.done.set(it.offset)
	}
	p.dirty = true
}

// saved notes that an item is in the side log now, so that its place in the main topic is done.
func (p *partition) saved(it *item, key string) {
	it.side = key
	p.items[key] = it
	if it.offset >= 0 {
		p.done.set(it.offset)
		p.dirty = true
	}
}

// sideKey is the key of an item in the side log.
func (it *item) sideKey() string {
	if it.side != "" {
		return it.side
	}
	return mainKey(it.offset)
}

// sideRecord is the state of an item as the side log keeps it.
func (m *member) sideRecord(it *item, s state) *kgo.Record {
	s.Epoch, s.Offset, s.Ref, s.Spared, s.Rounds = it.p.epoch, it.offset, it.ref, it.spared, it.rounds
	s.Order = it.order
	if s.Tail {
		s.Order = it.p.done.next
	}
	return &kgo.Record{Topic: m.sideName, Partition: it.p.id, Key: []byte(it.sideKey()), Value: envelope.Append(nil, it.msg),
		Headers: []kgo.RecordHeader{s.header()}}
}

// saveSuspects stores what the crash of an earlier owner cost.
func (m *member) saveSuspects() {
	m.mu.Lock()
	suspects := m.suspects
	m.suspects = nil
	m.mu.Unlock()
	for _, it := range suspects {
		m.saveLater(it)
	}
}

// saveLater stores the counters of an item whose lease was lost, without waiting for it.
func (m *member) saveLater(it *item) {
	m.mu.Lock()
	if it.state == gone || it.p.lost {
		m.mu.Unlock()
		return
	}
	s := state{Attempts: it.attempts, Lost: it.lost, Cause: it.cause, History: envelope.AppendHistory(nil, it.history...)}
	r := m.sideRecord(it, s)
	m.mu.Unlock()
	m.d.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			return // it is still in the main topic, or in the side log with older counters
		}
		m.mu.Lock()
		settled := it.state == gone
		if !settled {
			it.p.saved(it, string(r.Key))
		}
		m.mu.Unlock()
		if settled {
			m.d.client.Produce(context.Background(), tombstone(m.sideName, it.p.id, string(r.Key)), nil)
		}
	})
}
