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
	"github.com/ferrymq/ferry/driver/kafka/internal/retrylog"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/scheduler"
)

func keyOf(logKey string) itemKey {
	if rest, ok := strings.CutPrefix(logKey, retrylog.MainPrefix); ok {
		if off, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return itemKey{offset: off}
		}
	}
	return itemKey{-1, logKey}
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
	rs := []*kgo.Record{{Topic: p.m.retryName, Partition: p.id, Key: []byte(retrylog.EpochKey), Value: []byte{'e'},
		Headers: []kgo.RecordHeader{record.State{Epoch: p.epoch, Offset: -1}.Header()}}}
	if found == nil {
		return rs
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
		s.Begun, s.Lost, s.Once, s.Silent, s.Cause = "", it.lost, it.once, it.silent(), it.cause
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
	return &kgo.Record{Topic: p.m.retryName, Partition: p.id, Key: r.Key, Value: r.Value,
		Headers: []kgo.RecordHeader{s.Header()}}
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
	p.resolved = nil
	p.m.wakeAll()
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
	if p.loaded {
		p.logAdded(key, s, ok, r)
		return
	}
	switch {
	case s.Late(r):
		p.doubtful[key] = true
	case strings.HasPrefix(key, retrylog.CommandPrefix): // from before our time: nobody waits for it, or asks again
		p.doubtful[key] = r.Value != nil
		if r.Value == nil {
			delete(p.doubtful, key)
		}
	case strings.HasPrefix(key, retrylog.NoticePrefix):
		p.notices[key] = string(r.Value)
		if r.Value == nil {
			delete(p.notices, key)
		}
	case ok && !s.Insert && s.Epoch < p.newest:
		p.doubtful[key] = true
	case key == retrylog.EpochKey:
		p.newest = max(p.newest, s.Epoch)
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
	case key == retrylog.EpochKey && ok && s.Epoch > p.epoch:
		p.succeeded = true
	case strings.HasPrefix(key, retrylog.CommandPrefix):
		p.commanded(r)
	case strings.HasPrefix(key, retrylog.NoticePrefix):
		if end := p.noticeAdded(key, r); end != nil {
			p.m.d.cluster.Client.Produce(context.Background(), end, nil)
		}
	case s.Late(r):
		p.undo(key)
	case ok && s.Insert && r.Value != nil:
		if it := p.items.of(keyOf(key)); it != nil { // a replay that was repeated: what became of the first is written again
			p.m.suspects = append(p.m.suspects, it)
		} else if it = p.restore(key, r); it != nil {
			p.m.add(it)
		}
	case ok && !s.Insert && s.Epoch < p.epoch && key != retrylog.EpochKey: // an earlier owner that does not know it yet
		p.undo(key)
	}
}

// undo writes again what is under a key, since a record there is void that compaction would keep.
func (p *partition) undo(key string) {
	if it := p.items.of(keyOf(key)); it != nil {
		p.m.suspects = append(p.m.suspects, it)
	} else {
		p.m.d.cluster.Client.Produce(context.Background(), p.m.retryEnd(p, key), nil)
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

// saved notes that an item is in the retry log now, so that its place in the main topic is done.
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
	return retrylog.MainPrefix + strconv.FormatInt(it.offset, 10)
}

// now is what is stored of an item as it is.
func (it *Item) now() record.State {
	return record.State{Attempts: it.attempts, Lost: it.lost, Once: it.once, Begun: it.begun(), Silent: it.silent(),
		Cause: it.cause, Loose: it.loose, Tail: it.Tail, History: envelope.AppendHistory(nil, it.history...)}
}

// retryRecord is the state of an item as the retry log keeps it.
func (m *member) retryRecord(it *Item, s record.State) *kgo.Record {
	s.Epoch, s.Offset, s.Ref, s.Spared, s.Rounds = it.p.epoch, it.offset, it.Ref, it.spared, it.rounds
	s.Order, s.Among = it.order, it.among
	if s.Tail {
		s.Order, s.Among = it.p.done.Next, 0
	}
	return &kgo.Record{Topic: m.retryName, Partition: it.p.id, Key: []byte(it.retryKey()),
		Value: envelope.Append(nil, it.Msg), Headers: []kgo.RecordHeader{s.Header()}}
}
