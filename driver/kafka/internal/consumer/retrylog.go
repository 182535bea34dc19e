package consumer

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// How keys in a retry log begin.
const (
	commandPrefix = "c/"
	// A notice of a holder about a lost delivery that had begun takes its count back. Where its partition is with another
	// consumer, or may be, it is a record in the retry log: the owner reads it, also the next one. The key has the token,
	// the value is the key of the message in the retry log.
	noticePrefix = "w/"
	mainPrefix   = "m/" // what follows is an offset of the main topic
	epochKey     = "e"  // whole: who owns the log from here on; another is standInKey
)

// loggedAs is a record of a retry log. A nil value is a tombstone.
func loggedAs(topic string, partition int32, key string, value []byte, s record.State) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: value,
		Headers: []kgo.RecordHeader{s.Header()}}
}

// keyOf is what an item is known by that has a key in the retry log.
func keyOf(logKey string) (offset int64, _ string) {
	if rest, ok := strings.CutPrefix(logKey, mainPrefix); ok {
		if off, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return off, ""
		}
	}
	return -1, logKey
}

// readLog reads the retry log, and follows it from now on. Nothing that the last owner stored may be hidden behind
// somebody else's transaction.
func (p *partition) readLog(ctx context.Context) error {
	p.retryLog = p.m.d.tables.Watch(p.m.retryName, p.id, p.logChanged)
	return p.retryLog.SyncWhole(ctx)
}

// takeOver are the records that begin an ownership: who it is, and what an earlier owner wrote too late is written
// again as it was before, since compaction would keep only the late one. So is what had begun with the last owner, with
// what became of it: when the next delivery is lost, it must be known whether that one had begun.
func (p *partition) takeOver(found map[string]*kgo.Record) []*kgo.Record {
	rs := []*kgo.Record{loggedAs(p.m.retryName, p.id, epochKey, []byte{'e'}, record.State{Epoch: p.epoch,
		Offset: -1})}
	if found == nil {
		return rs
	}
	if p.standsIn != "" {
		delete(p.doubtful, standInKey)
		rs = append(rs, p.standInNow())
	}
	for key := range p.doubtful {
		r := found[key]
		if r == nil {
			rs = append(rs, p.m.retryEnd(p, key))
			continue
		}
		s, _ := record.StateOf(r)
		rs = append(rs, p.again(r, s))
	}
	for key, it := range p.resolved {
		s, _ := record.StateOf(found[key])
		s.Begun, s.Lost, s.Once, s.Silent, s.Cause = "", it.lost, it.once, it.losses().silent, it.cause
		rs = append(rs, p.again(found[key], s))
	}
	return rs
}

// again is a record of an earlier owner as ours, with what is left of its wait.
func (p *partition) again(r *kgo.Record, s record.State) *kgo.Record {
	s.Until = 0
	if !s.Insert {
		s.Epoch = p.epoch
	}
	s.After = max(0, s.After-p.m.d.cluster.Now().Sub(r.Timestamp))
	return loggedAs(p.m.retryName, p.id, string(r.Key), r.Value, s)
}

// tookOver is told that the records of takeOver are stored.
func (p *partition) tookOver(rs []*kgo.Record) {
	p.ownedFrom = rs[0].Offset
	for _, r := range rs {
		if it := p.resolved[string(r.Key)]; it != nil { // the last one counts
			it.saving = false
			p.saved(it, r)
		}
	}
	for it := range p.items.all() {
		if it.unsaved {
			p.suspect(it)
		}
	}
	p.resolved = nil
}

// logChanged is told of each record of the retry log. What an earlier owner wrote after a later one began is void.
func (p *partition) logChanged(r *kgo.Record) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.tally.Logged, p.dirty = r.Offset+1, true // how far it is counted is committed too
	if r.Attrs.IsControl() {
		return
	}
	key := string(r.Key)
	s, ok := record.StateOf(r)
	if p.running {
		p.logAdded(key, s, ok, r)
		return
	}
	switch {
	case s.Late(r):
		p.doubtful[key] = true
	case ok && !s.Insert && s.Epoch < p.epoch:
		p.doubtful[key] = true
	case key == epochKey:
		if s.Epoch > p.epoch {
			p.dropStandIn() // of an earlier owner
		}
		p.epoch = max(p.epoch, s.Epoch)
	case r.Value == nil:
		delete(p.found, key)
	default:
		p.found[key] = r
	}
}

// logAdded is told of a record that comes while we own the retry log: our own, or from outside.
func (p *partition) logAdded(key string, s record.State, ok bool, r *kgo.Record) {
	switch {
	case p.lost:
	case key == epochKey && ok && s.Epoch > p.epoch:
		p.succeeded = true
	case strings.HasPrefix(key, commandPrefix):
		p.commanded(r)
	case strings.HasPrefix(key, noticePrefix):
		if r.Value != nil {
			p.hear(strings.TrimPrefix(key, noticePrefix), string(r.Value))
			p.m.saver.endLater(p.m.retryEnd(p, key))
		}
	case s.Late(r):
		p.undo(key)
	case ok && s.Insert && r.Value != nil && !s.Done: // otherwise it is for the owner after a reset
		if it := p.items.of(keyOf(key)); it != nil { // a replay that was repeated: what became of the first is written again
			p.m.saver.saveSoon(it)
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
		p.m.saver.saveSoon(it)
	} else {
		p.m.saver.endLater(p.m.retryEnd(p, key))
	}
}

// restore turns a record of the retry log into an item. What it was in the main topic is done.
func (p *partition) restore(key string, r *kgo.Record) *Item {
	s, ok := record.StateOf(r)
	if !ok {
		return nil
	}
	if s.Done {
		p.restoreEnded(key, s, r.Value)
		return nil
	}
	msg, err := envelope.Decode(r.Value)
	if err != nil {
		return nil // stays in the log, for an operator to see
	}
	msg.Topic = p.m.topic.Name
	it := &Item{p: p, size: len(msg.Body), offset: s.Offset, order: s.Order, among: s.Among, logKey: key,
		logOffset: r.Offset, Msg: msg, Ref: s.Ref, attempts: s.Attempts, lost: s.Lost, once: s.Once, rounds: s.Rounds,
		cause: s.Cause, storedCause: s.Cause, spared: s.Spared, loose: s.Loose, Node: scheduler.Node[Item]{Tail: s.Tail}}
	if it.Ref.IsZero() {
		it.Ref = driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: record.SubSide}
	}
	if s.Begun != "" || len(s.Silent) > 0 {
		it.past = &losses{s.Begun, s.Silent}
	}
	p.tailed = max(p.tailed, s.Among)
	it.history, _ = envelope.DecodeHistory(s.History)
	if s.After > 0 {
		// the broker's time is cut to milliseconds
		it.due = p.m.d.cluster.Local(r.Timestamp.Add(s.After).Add(time.Millisecond))
	}
	it.careful = p.careful > 0 && !p.running
	p.recall(it, offsets.Location{Retry: true, Offset: r.Offset})
	p.m.spill(it)
	if s.Offset >= 0 {
		p.done.Set(s.Offset)
		p.dirty = true
	}
	p.items.put(it)
	return it
}

// saved notes that an item is in the retry log now, so that its offset in the main topic is done.
func (p *partition) saved(it *Item, r *kgo.Record) {
	it.logKey, it.logOffset, it.unsaved = string(r.Key), r.Offset, false
	if s, ok := record.StateOf(r); ok {
		it.setBegun(s.Begun)
		it.storedCause, it.tailUnsaved = s.Cause, it.tailUnsaved && s.Among != it.among
	}
	p.items.put(it)
	p.m.uncount(it)
	p.dirty = true
	if it.offset >= 0 {
		p.done.Set(it.offset)
	}
}

// retryKey is the key of an item in the retry log.
func (it *Item) retryKey() string {
	if it.logKey != "" {
		return it.logKey
	}
	return mainPrefix + strconv.FormatInt(it.offset, 10)
}

// now is what is stored of an item as it is.
func (it *Item) now() record.State {
	past := it.losses()
	return record.State{Attempts: it.attempts, Lost: it.lost, Once: it.once, Begun: past.begun, Silent: past.silent,
		Cause: it.cause, Loose: it.loose, Tail: it.Tail, History: envelope.AppendHistory(nil, it.history...)}
}

// retryRecord is the state of an item as the retry log keeps it.
func (m *member) retryRecord(it *Item, s record.State) *kgo.Record {
	s.Epoch, s.Offset, s.Ref, s.Spared, s.Rounds = it.p.epoch, it.offset, it.Ref, it.spared, it.rounds
	s.Order, s.Among = it.order, it.among
	if s.Tail {
		s.Order, s.Among = it.p.done.Next, 0
	}
	return loggedAs(m.retryName, it.p.id, it.retryKey(), envelope.Append(nil, it.Msg), s)
}
