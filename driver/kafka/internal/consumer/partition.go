package consumer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// partition is one that this process owns for a group, or visits. Guarded by the member's mu.
type partition struct {
	id       int32
	m        *member
	done     *offsets.Set
	end      int64 // of the main topic when it was assigned
	items    items
	pending  []*Item // from the retry log, not yet in the queue, by order
	retryLog *compacted.Table
	epoch    int64 // of ours; while the retry log is read, the highest there
	going    bool  // it goes to another member: nothing more of it is handed out
	over     bool  // the time to settle is over: what is leased is lost, and what is committed now is the last word
	lost     bool  // no longer ours
	// succeeded says that another consumer owns it, and that we have not been told yet.
	succeeded   bool
	leased      int   // claims
	dirty       bool  // something is done that is not committed
	leftInOrder bool  // the last word is committed
	careful     int64 // before it, an earlier owner may have delivered what it did not commit
	running     bool  // the retry log is read, and its items are there

	tailed int64            // how many items joined the tail; see toTail
	begun  bool             // we have committed who holds something of it
	passed int64            // what is committed
	ended  map[int64]string // keys in the retry log of what ended and is not committed, by offset
	// doneKeys are keys of messages that an earlier owner ended without a tombstone: those before this offset have ended
	// too.
	doneKeys map[string]int64

	cut int64 // where the main topic had lost its end when we took over, or -1

	// While commits are refused; see standin.go.
	last         uint64    // the mark of the last commit, as far as we know
	refusedSince time.Time // or since the newest stand-in; zero: it was accepted
	standsIn     string    // the newest stand-in; empty: there is none

	ownedFrom, trimmed int64 // of the retry log: where our ownership begins, and what is deleted

	tally offsets.Tally
	// counts of items, but for those that are gone: a commit, which is made five times a second under the lock that claims
	// and settlements need, does not look at all of them.
	counts [itemStates]int
	// delivered are the items that a commit may have to name, and some that it need not name any more.
	delivered []*Item

	commits      sync.Mutex // one commit or transaction at a time; see commit
	emitter      *cluster.Transactor
	emitting     []*settling // wait for the next transaction
	transacting  bool        // transact runs
	transactions int

	// While the retry log is read: what is in it, and what must be written again.
	found    map[string]*kgo.Record
	doubtful map[string]bool
	resolved map[string]*Item // had begun with the last owner
}

// load reads what the group left unfinished, before anything is fetched from the main topic.
func (m *member) load(ctx context.Context, id int32, at kadm.Offset) (err error) {
	p := m.newPartition(id, at)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := p.checkLog(ctx); err != nil {
		return err
	}
	if err := p.readLog(ctx); err != nil {
		return err
	}
	if err := p.addStandIn(ctx); err != nil {
		return err
	}
	ends, err := m.d.cluster.CommittedEnds(ctx, m.mainName)
	if err != nil {
		return err
	}
	m.mu.Lock()
	rs := p.takeOver(p.begin(ends[id]))
	m.mu.Unlock()
	if err := m.d.cluster.Produce(ctx, rs...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.tookOver(rs)
	m.parts[id] = p
	delete(m.coming, id)
	m.wakeAll()
	return nil
}

// committedAt is what a group has committed for a partition: nothing, if that was added a moment ago.
func committedAt(all map[int32]kadm.Offset, id int32) kadm.Offset {
	if at, ok := all[id]; ok {
		return at
	}
	return kadm.Offset{At: -1, LeaderEpoch: -1}
}

func (m *member) newPartition(id int32, committed kadm.Offset) *partition {
	at := max(0, committed.At)
	return &partition{id: id, m: m, cut: -1, done: offsets.Committed(committed), items: newItems(),
		found: map[string]*kgo.Record{}, doubtful: map[string]bool{}, resolved: map[string]*Item{}, passed: at,
		ended: map[int64]string{}, doneKeys: map[string]int64{}, tally: offsets.ReadTally(committed.Metadata, at),
		last:    mark(committed.At, committed.Metadata),
		emitter: m.d.cluster.Transactor(m.d.cluster.GroupID(m.topic.Name, m.group), id)}
}

// begin turns what was read of the retry log into items, and returns it. The main topic ended at end.
func (p *partition) begin(end int64) map[string]*kgo.Record {
	p.end, p.epoch = end, p.epoch+1
	if !p.done.Clean {
		p.careful = min(end, p.done.Base+cluster.WindowItems)
	}
	p.keepCutOff()
	p.dropStandIn()
	heard := map[string]string{}
	for key, r := range p.found {
		token, notice := strings.CutPrefix(key, noticePrefix)
		if notice {
			heard[token] = string(r.Value)
		}
		if notice || strings.HasPrefix(key, commandPrefix) { // nobody waits for that any more, or asks again
			delete(p.found, key)
			p.doubtful[key] = true // a tombstone follows
		} else if it := p.restore(key, r); it != nil {
			p.pending = append(p.pending, it)
		}
	}
	for token, logKey := range heard {
		p.hear(token, logKey)
	}
	slices.SortFunc(p.pending, func(a, b *Item) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.among, b.among), cmp.Compare(a.offset, b.offset),
			cmp.Compare(a.Ref.Pos, b.Ref.Pos))
	})
	if p.done.Next >= p.end {
		p.release(p.end)
	}
	found := p.found
	p.found, p.running = nil, true
	return found
}

func (p *partition) close() {
	p.emitter.Close()
	if p.retryLog != nil {
		p.retryLog.Close()
	}
}

// release puts restored items into the queue that come before an offset of the main topic.
func (p *partition) release(before int64) {
	all := before >= p.end
	for len(p.pending) > 0 && (all || p.pending[0].order <= before) {
		if it := p.pending[0]; p.items.of(it.offset, it.logKey) == it {
			p.m.add(it)
		}
		p.pending = p.pending[1:]
	}
	if all {
		p.end = -1
	}
}

// fetched is a record of the main topic, decoded.
type fetched struct {
	r       *kgo.Record
	it      *Item // nil where a transaction ended
	problem error // why it cannot be decoded
}

// decode reads a record. It needs no lock.
func (m *member) decode(r *kgo.Record) fetched {
	if r.Attrs.IsControl() {
		return fetched{r: r}
	}
	// not one allocation with the item, which may outlive it for long: its body is part of what was fetched
	msg := new(driver.Message)
	err := record.ReadRecord(msg, m.topic.Name, r)
	if err == nil && m.d.cluster.Settings.RejectForeign && !record.Ours(r) {
		err = record.ErrForeign
	}
	return fetched{r, &Item{Msg: msg, size: len(r.Value), offset: r.Offset, order: r.Offset, Ref: record.RefOf(r)}, err}
}

// feed takes a fetched record. What comes right behind it is for release.
func (p *partition) feed(f fetched) {
	r, it := f.r, f.it
	p.done.SkipTo(r.Offset)
	p.done.Next = r.Offset + 1
	p.done.Read(r)
	p.release(r.Offset)
	if r.Attrs.IsControl() || record.IsLate(r) || // where a transaction ended, or void
		f.problem == nil && r.Offset < p.doneKeys[it.Msg.Key] {
		p.done.Set(r.Offset)
	}
	if p.done.Has(r.Offset) {
		p.dirty = true
		return
	}
	if f.problem != nil {
		p.m.bad = append(p.m.bad, invalid{p, r, f.problem})
		return
	}
	it.p = p
	p.m.share(it)
	if s, ok := record.StateOf(r); ok {
		it.cause = s.Cause
	}
	if it.cause == driver.CauseFirst && r.Offset < p.done.Replay {
		it.cause = driver.CauseReplay
	}
	it.careful = r.Offset < p.careful
	p.recall(it, offsets.Location{Offset: r.Offset})
	p.m.count(it)
	p.items.put(it)
	p.m.add(it)
	if p.m.diverts(it) {
		p.m.saver.saveSoon(it)
	}
}

// recall tells an item what became of it with the last owner. If that one left in order, whoever held it was told, and
// nothing is lost. Only the next owner counts and stores what was lost: a visit just shows it, and that of a group with
// consumers shows what they hold instead, see showLeased.
func (p *partition) recall(it *Item, at offsets.Location) {
	if p.m.Busy {
		return
	}
	kind, begun := p.done.Before[at], it.losses().begun
	switch {
	case kind == offsets.ReturnedPart:
		it.cause = driver.CauseReleased
		p.deliver(it)
	case kind == offsets.MovedPart || kind == offsets.LeasedPart && p.done.Clean:
		it.cause = driver.CauseRebalance
		p.deliver(it)
	case p.done.Clean:
	case kind == offsets.LeasedPart || begun != "":
		it.lose(begun)
		it.cause = driver.CauseLeaseExpired
		if !p.m.Visit {
			p.tally.Redelivered++
			p.suspect(it)
		}
	}
	if begun != "" && !p.m.Visit {
		it.setBegun("")
		it.unsaved, it.saving = false, true // until takeOver has stored it
		p.resolved[it.logKey] = it
	}
}

// suspect notes an item whose losses must be stored: once what begins our ownership is, which may write again what was
// there before.
func (p *partition) suspect(it *Item) {
	it.unsaved = true
	if p.running {
		p.m.saver.saveSoon(it)
	}
}

// forget is told that an item is settled.
func (p *partition) forget(it *Item) {
	p.items.drop(it)
	p.noteEnded(it)
	if it.offset >= 0 {
		p.done.Set(it.offset)
	}
	p.m.uncount(it)
	p.dirty = true
}
