package kafka

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// epochKey marks in a side log who owns it from here on.
const epochKey = "e"

const mainPrefix = "m/" // of keys in the side log whose rest is an offset of the main topic

func keyOf(side string) itemKey {
	if rest, ok := strings.CutPrefix(side, mainPrefix); ok {
		if off, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return itemKey{offset: off}
		}
	}
	return itemKey{-1, side}
}

// readSide reads the side log, and follows it from now on. Nothing that the last owner stored may be hidden behind somebody else's transaction.
func (p *partition) readSide(ctx context.Context) error {
	p.side = p.m.d.watch(p.m.sideName, p.id, p.sideChanged)
	return p.side.syncWhole(ctx)
}

// takeOver are the records that begin an ownership: who it is, and what an earlier owner wrote too late is written
// again as it was before, since compaction would keep only the late one. So is what had begun with the last owner, with
// what became of it: when the next delivery is lost, it must be known whether that one had begun.
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
		rs = append(rs, p.again(r, s))
	}
	for key, it := range p.resolved {
		s, _ := stateOf(found[key])
		s.Begun, s.Lost, s.Once, s.Silent, s.Cause = "", it.lost, it.once, it.silent(), it.cause
		rs = append(rs, p.again(found[key], s))
	}
	return rs
}

// again is a record of an earlier owner as ours, with what is left of its wait.
func (p *partition) again(r *kgo.Record, s state) *kgo.Record {
	s.Until = 0
	if !s.Insert {
		s.Epoch = p.epoch
	}
	s.After = max(0, s.After-p.m.d.now().Sub(r.Timestamp))
	return &kgo.Record{Topic: p.m.sideName, Partition: p.id, Key: r.Key, Value: r.Value, Headers: []kgo.RecordHeader{s.header()}}
}

// tookOver is told that the records of takeOver are stored.
func (p *partition) tookOver(rs []*kgo.Record) {
	p.markedAt = rs[0].Offset
	for _, r := range rs {
		if it := p.resolved[string(r.Key)]; it != nil { // the last one counts
			it.saving = false
			p.saved(it, r)
		}
	}
	p.resolved = nil
	p.m.wakeAll()
}

// sideChanged is told of each record of the side log. What an earlier owner wrote after a later one began is void.
func (p *partition) sideChanged(r *kgo.Record) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.tally.Side, p.dirty = r.Offset+1, true // how far it is counted is committed too
	if r.Attrs.IsControl() {
		return
	}
	key := string(r.Key)
	s, ok := stateOf(r)
	if p.loaded {
		p.sideAdded(key, s, ok, r)
		return
	}
	switch {
	case s.late(r):
		p.doubtful[key] = true
	case strings.HasPrefix(key, commandPrefix): // from before our time: nobody waits for it, or asks again
		p.doubtful[key] = r.Value != nil
		if r.Value == nil {
			delete(p.doubtful, key)
		}
	case strings.HasPrefix(key, wordPrefix):
		p.words[key] = string(r.Value)
		if r.Value == nil {
			delete(p.words, key)
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
	case key == epochKey && ok && s.Epoch > p.epoch:
		p.succeeded = true
	case strings.HasPrefix(key, commandPrefix):
		p.commanded(r)
	case strings.HasPrefix(key, wordPrefix):
		if end := p.wordAdded(key, r); end != nil {
			p.m.d.client.Produce(context.Background(), end, nil)
		}
	case s.late(r):
		p.undo(key)
	case ok && s.Insert && r.Value != nil:
		if it := p.items.of(keyOf(key)); it != nil { // a replay that was repeated: what became of the first is written again
			p.m.suspects = append(p.m.suspects, it)
		} else if it = p.restore(key, r); it != nil {
			p.m.add(it)
		}
	case ok && !s.Insert && s.Epoch < p.epoch && key != epochKey: // an earlier owner that does not know it yet
		p.undo(key)
	}
}

// undo writes again what is under a key, since a record there is void that compaction would keep.
func (p *partition) undo(key string) {
	if it := p.items.of(keyOf(key)); it != nil {
		p.m.suspects = append(p.m.suspects, it)
	} else {
		p.m.d.client.Produce(context.Background(), p.m.sideEnd(p, key), nil)
	}
}

// restore turns a record of the side log into an item. What it was in the main topic is done.
func (p *partition) restore(key string, r *kgo.Record) *item {
	s, ok := stateOf(r)
	if !ok {
		return nil
	}
	if s.Done {
		p.restoreMark(key, s, r.Value)
		return nil
	}
	msg, err := envelope.Decode(r.Value)
	if err != nil {
		return nil // stays in the log, for an operator to see
	}
	msg.Topic = p.m.topic.name
	it := &item{p: p, size: len(msg.Body), offset: s.Offset, order: s.Order, among: s.Among, side: key, at: r.Offset, msg: msg, ref: s.Ref, attempts: s.Attempts, lost: s.Lost, once: s.Once, rounds: s.Rounds,
		cause: s.Cause, storedCause: s.Cause, spared: s.Spared, loose: s.Loose, Node: scheduler.Node[item]{Tail: s.Tail}}
	if it.ref.IsZero() {
		it.ref = driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: subSide}
	}
	if s.Begun != "" || len(s.Silent) > 0 {
		it.past = &losses{s.Begun, s.Silent}
	}
	p.placed = max(p.placed, s.Among)
	it.history, _ = envelope.DecodeHistory(s.History)
	if s.After > 0 {
		it.due = p.m.d.local(r.Timestamp.Add(s.After).Add(time.Millisecond)) // the broker's time is cut to milliseconds
	}
	it.careful = p.careful > 0 && !p.running
	p.recall(it, place{true, r.Offset})
	p.m.spill(it)
	if s.Offset >= 0 {
		p.done.set(s.Offset)
		p.dirty = true
	}
	p.items.put(it)
	return it
}

// saved notes that an item is in the side log now, so that its place in the main topic is done.
func (p *partition) saved(it *item, r *kgo.Record) {
	it.side, it.at, it.unsaved = string(r.Key), r.Offset, false
	if s, ok := stateOf(r); ok {
		it.setBegun(s.Begun)
		it.storedCause, it.unplaced = s.Cause, it.unplaced && s.Among != it.among
	}
	p.items.put(it)
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

// now is what is stored of an item as it is.
func (it *item) now() state {
	return state{Attempts: it.attempts, Lost: it.lost, Once: it.once, Begun: it.begun(), Silent: it.silent(), Cause: it.cause, Loose: it.loose, Tail: it.Tail,
		History: envelope.AppendHistory(nil, it.history...)}
}

// sideRecord is the state of an item as the side log keeps it.
func (m *member) sideRecord(it *item, s state) *kgo.Record {
	s.Epoch, s.Offset, s.Ref, s.Spared, s.Rounds = it.p.epoch, it.offset, it.ref, it.spared, it.rounds
	s.Order, s.Among = it.order, it.among
	if s.Tail {
		s.Order, s.Among = it.p.done.next, 0
	}
	return &kgo.Record{Topic: m.sideName, Partition: it.p.id, Key: []byte(it.sideKey()), Value: envelope.Append(nil, it.msg),
		Headers: []kgo.RecordHeader{s.header()}}
}
