package kafka

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
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
	items   map[itemKey]*item
	pending []*item // from the side log, not yet in the queue, by order
	side    *table
	epoch   int64
	loaded  bool
	lost    bool  // no longer ours
	dirty   bool  // something is done that is not committed
	leaving bool  // what is committed now is the last word
	careful int64 // before it, an earlier owner may have delivered what he did not commit
	running bool  // loaded completely

	markedAt, trimmed int64 // of the side log: where our ownership begins, and what is deleted

	tally tally

	// While the side log is read: what is in it, what must be written again, and the highest epoch.
	found    map[string]*kgo.Record
	doubtful map[string]bool
	newest   int64
}

// epochKey marks in a side log who owns it from here on.
const epochKey = "e"

// itemKey is what an item is known by: its offset in the main topic, or its key in the side log if it has none.
type itemKey struct {
	offset int64
	side   string
}

const mainPrefix = "m/" // of keys in the side log whose rest is an offset of the main topic

func keyOf(side string) itemKey {
	if rest, ok := strings.CutPrefix(side, mainPrefix); ok {
		if off, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return itemKey{offset: off}
		}
	}
	return itemKey{-1, side}
}

func (it *item) key() itemKey {
	if it.offset >= 0 {
		return itemKey{offset: it.offset}
	}
	return itemKey{-1, it.side}
}

// load reads what the group left unfinished, before anything is fetched from the main topic.
func (m *member) load(ctx context.Context, id int32, at int64, metadata string) (*partition, error) {
	p := m.newPartition(id, at, metadata)
	if err := p.readSide(ctx); err != nil {
		p.close()
		return nil, err
	}
	ends, err := m.d.admin.ListEndOffsets(ctx, m.mainName)
	if err != nil {
		p.close()
		return nil, err
	}
	end, _ := ends.Lookup(m.mainName, id)
	m.mu.Lock()
	found := p.begin(at, end.Offset)
	m.mu.Unlock()
	rs := p.takeOver(found)
	if err := m.d.produce(ctx, rs...); err != nil {
		p.close()
		return nil, err
	}
	m.mu.Lock()
	p.markedAt = rs[0].Offset
	m.mu.Unlock()
	return p, nil
}

func (m *member) newPartition(id int32, at int64, metadata string) *partition {
	p := &partition{id: id, m: m, done: newDoneSet(at), items: map[itemKey]*item{}, found: map[string]*kgo.Record{}, doubtful: map[string]bool{}, tally: readTally(metadata, at)}
	p.done.readMetadata(metadata)
	return p
}

// begin turns what was read of the side log into items, and returns it. The main topic ended at end.
func (p *partition) begin(at, end int64) map[string]*kgo.Record {
	p.end, p.epoch, p.loaded = end, p.newest+1, true
	if !p.done.clean && !p.m.visiting {
		p.careful = min(end, p.done.base+windowItems)
	}
	for key, r := range p.found {
		if it := p.restore(key, r); it != nil {
			p.pending = append(p.pending, it)
		}
	}
	slices.SortFunc(p.pending, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.offset, b.offset), cmp.Compare(a.ref.Pos, b.ref.Pos))
	})
	if at >= p.end {
		p.release(p.end)
	}
	found := p.found
	p.found, p.running = nil, true
	return found
}

// readSide reads the side log, and follows it from now on.
func (p *partition) readSide(ctx context.Context) error {
	p.side = p.m.d.watch(p.m.sideName, p.id, p.sideChanged)
	return p.side.sync(ctx)
}

func (p *partition) close() {
	if p.side != nil {
		p.side.close()
	}
}

// takeOver are the records that begin an ownership: who it is, and what an earlier owner wrote too late is written
// again as it was before, since compaction would keep only the late one.
func (p *partition) takeOver(found map[string]*kgo.Record) []*kgo.Record {
	rs := []*kgo.Record{{Topic: p.m.sideName, Partition: p.id, Key: []byte(epochKey), Value: []byte{'e'},
		Headers: []kgo.RecordHeader{state{Epoch: p.epoch, Offset: -1}.header()}}}
	if found == nil {
		return rs
	}
	for key := range p.doubtful {
		r := found[key]
		if r == nil {
			rs = append(rs, p.m.sideEnd(p, key))
			continue
		}
		s, _ := stateOf(r)
		if !s.Insert {
			s.Epoch = p.epoch
		}
		s.After = max(0, s.After-p.m.d.now().Sub(r.Timestamp))
		rs = append(rs, &kgo.Record{Topic: p.m.sideName, Partition: p.id, Key: r.Key, Value: r.Value, Headers: []kgo.RecordHeader{s.header()}})
	}
	return rs
}

// sideEnd is a tombstone of the side log, by its owner.
func (m *member) sideEnd(p *partition, key string) *kgo.Record {
	r := tombstone(m.sideName, p.id, key)
	r.Headers = []kgo.RecordHeader{state{Epoch: p.epoch, Offset: -1}.header()}
	return r
}

// sideChanged is told of each record of the side log. What an earlier owner wrote after a later one began is void.
func (p *partition) sideChanged(r *kgo.Record) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.tally.Side = r.Offset + 1
	key := string(r.Key)
	s, ok := stateOf(r)
	if p.loaded {
		p.sideAdded(key, s, ok, r)
		return
	}
	switch {
	case strings.HasPrefix(key, commandPrefix): // from before our time: nobody waits for it, or asks again
		p.doubtful[key] = r.Value != nil
		if r.Value == nil {
			delete(p.doubtful, key)
		}
	case ok && !s.Insert && s.Epoch < p.newest:
		p.doubtful[key] = true
	case key == epochKey:
		p.newest = max(p.newest, s.Epoch)
	case r.Value == nil:
		delete(p.found, key)
	default:
		p.found[key] = r
	}
}

// sideAdded is told of a record that comes while we own the side log: our own, or from outside.
func (p *partition) sideAdded(key string, s state, ok bool, r *kgo.Record) {
	switch {
	case p.lost:
	case strings.HasPrefix(key, commandPrefix):
		p.commanded(r)
	case ok && s.Insert && r.Value != nil && p.items[keyOf(key)] == nil:
		if it := p.restore(key, r); it != nil {
			it.order = p.done.next
			p.m.add(it)
		}
	case ok && !s.Insert && s.Epoch < p.epoch && key != epochKey: // an earlier owner that does not know it yet
		if it := p.items[keyOf(key)]; it != nil {
			p.m.suspects = append(p.m.suspects, it)
		} else {
			p.m.d.client.Produce(context.Background(), p.m.sideEnd(p, key), nil)
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
	it := &item{p: p, size: len(msg.Body), offset: s.Offset, order: s.Order, side: key, at: r.Offset, msg: msg, ref: s.Ref, attempts: s.Attempts, lost: s.Lost, rounds: s.Rounds,
		cause: s.Cause, spared: s.Spared, loose: s.Loose, tail: s.Tail, inLane: -1}
	if it.ref.IsZero() {
		it.ref = driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: subSide}
	}
	it.history, _ = envelope.DecodeHistory(s.History)
	if s.After > 0 {
		it.due = p.m.d.local(r.Timestamp.Add(s.After + time.Millisecond)) // the broker's time is cut to milliseconds
	}
	it.careful = p.careful > 0 && !p.running
	p.recall(it, place{true, r.Offset})
	p.m.spill(it)
	if s.Offset >= 0 {
		p.done.set(s.Offset)
		p.dirty = true
	}
	p.items[it.key()] = it
	return it
}

// release puts restored items into the queue that come before an offset of the main topic.
func (p *partition) release(before int64) {
	for len(p.pending) > 0 && p.pending[0].order <= before {
		if it := p.pending[0]; p.items[it.key()] == it {
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
	if err == nil && p.m.d.o.RejectForeign && !ours(r) {
		err = errForeign
	}
	if err != nil {
		return r, err
	}
	it := &item{p: p, size: len(msg.Body), offset: r.Offset, order: r.Offset, msg: msg, ref: refOf(r), inLane: -1}
	if s, ok := stateOf(r); ok {
		it.cause = s.Cause
	}
	if it.cause == driver.CauseFirst && r.Offset < p.done.replay {
		it.cause = driver.CauseReplay
	}
	it.careful = r.Offset < p.careful
	p.recall(it, place{false, r.Offset})
	p.m.count(it)
	p.items[it.key()] = it
	p.m.add(it)
	if p.m.parked(it) {
		p.m.suspects = append(p.m.suspects, it)
	}
	return nil, nil
}

// recall tells an item what became of it with an earlier owner.
func (p *partition) recall(it *item, at place) {
	switch p.done.before[at] {
	case heldPart: // its holder crashed
		it.cause = driver.CauseLeaseExpired
		it.lost++
		p.m.suspects = append(p.m.suspects, it)
	case returnedPart:
		it.cause = driver.CauseReleased
	}
}

// forget is told that an item is settled.
func (p *partition) forget(it *item) {
	delete(p.items, it.key())
	if it.offset >= 0 {
		p.done.set(it.offset)
	}
	p.m.uncount(it)
	p.dirty = true
}

// saved notes that an item is in the side log now, so that its place in the main topic is done.
func (p *partition) saved(it *item, r *kgo.Record) {
	it.side, it.at = string(r.Key), r.Offset
	p.items[it.key()] = it
	p.m.uncount(it)
	p.dirty = true
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
	return mainPrefix + strconv.FormatInt(it.offset, 10)
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
