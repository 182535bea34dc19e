package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// parkAfter is how long the head of a key must wait for its followers to go to the side log. They leave the main topic,
// so that a key that fails for long holds up neither its offsets nor the window.
const parkAfter = time.Second

// parked reports whether an item waits behind a head of its key that waits for long.
func (q *queue) parked(it *item) bool {
	if !q.blocks(it) || it.state != ready || it.side != "" {
		return false
	}
	head := q.scheduled.Head(it.msg.Key)
	return head != nil && head != it && head.state == waiting && time.Until(head.due) > parkAfter
}

// parkBehind moves what was fetched before its head failed.
func (m *member) parkBehind(it *item) {
	if !m.blocks(it) {
		return
	}
	for x := range m.scheduled.Members(it.msg.Key) { // none: its partition goes, and what was behind it with it
		if m.parked(x) {
			m.suspects = append(m.suspects, x)
		}
	}
	if len(m.suspects) > 0 {
		m.wakeSaver()
	}
}

func (m *member) wakeSaver() {
	select {
	case m.saving <- struct{}{}:
	default:
	}
}

// keepSaving stores items in the side log that need not wait for it, until the member leaves.
func (m *member) keepSaving(ctx context.Context) {
	defer m.tasks.Done()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.saving:
			m.saveSuspects(ctx)
		}
	}
}

// saveSuspects stores what the crash of an earlier owner cost, and what is parked.
func (m *member) saveSuspects(ctx context.Context) {
	m.mu.Lock()
	suspects := m.suspects
	m.suspects = nil
	m.mu.Unlock()
	for _, it := range suspects {
		m.saveLater(ctx, it)
	}
}

// saveLater stores an item as it is, without waiting for it.
func (m *member) saveLater(ctx context.Context, it *item) {
	if m.fill(ctx, it) != nil {
		return // it is in the side log, with older counters
	}
	m.mu.Lock()
	if it.state == gone || it.p.lost || it.spilled || it.saving || it.claimed != nil && it.claimed.settling != nil {
		m.mu.Unlock()
		return
	}
	s, changes := it.now(), it.changes
	if it.state == waiting {
		s.After = max(0, time.Until(it.due))
	}
	r := m.sideRecord(it, s)
	it.saving = true
	m.mu.Unlock()
	m.d.client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		end := m.savedLater(it, r, changes, err)
		m.storeEnds(end)
		m.makeRoom()
	})
}

// savedLater is told what became of an item's record, and returns the end of one that was settled meanwhile.
func (m *member) savedLater(it *item, r *kgo.Record, changes uint32, err error) (end *kgo.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stored(it, r, changes, err)
}

func (m *member) stored(it *item, r *kgo.Record, changes uint32, err error) (end *kgo.Record) {
	it.saving = false
	m.wakeAll()
	switch {
	case err != nil: // it is still in the main topic, or in the side log with older counters
	case it.p.lost: // the next owner reads it
	case it.state == gone:
		end = m.endOf(it)
		it.p.noteMark(it)
	default:
		it.p.saved(it, r)
		m.spill(it)
		if it.changes != changes { // once more meanwhile
			m.suspect(it)
			m.wakeSaver()
		}
	}
	return end
}

// suspect notes an item whose losses must be stored.
func (m *member) suspect(it *item) {
	it.unsaved = true
	m.suspects = append(m.suspects, it)
}

// awaitSaved stores items as they are, and waits for it.
func (m *member) awaitSaved(ctx context.Context, its []*item) {
	for range 2 { // what was on its way already may be older
		for _, it := range its {
			m.saveLater(ctx, it)
		}
		for {
			m.mu.Lock()
			saving, wake := slices.ContainsFunc(its, func(it *item) bool { return it.saving }), m.await()
			its = slices.DeleteFunc(its, func(it *item) bool { return !it.unsaved && !it.unplaced })
			m.mu.Unlock()
			if !saving {
				break
			}
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
		}
	}
}

// makeRoom lets poll look again whether it may fetch.
func (m *member) makeRoom() {
	select {
	case m.room <- struct{}{}:
	default:
	}
}

// Bounds of what a member has in memory: fetched and not in the side log, in the side log with its body, and in all.
const (
	windowBytes = 64 << 20
	sideBytes   = 32 << 20
	maxItems    = 1_000_000
)

// full reports whether no more may be fetched for now.
func (m *member) full() bool {
	return m.window >= windowItems || m.windowBytes >= windowBytes || m.items >= maxItems
}

// count adds an item to the window.
func (q *queue) count(it *item) {
	it.counted = true
	q.window++
	q.windowBytes += it.size
}

func (q *queue) uncount(it *item) {
	if it.counted {
		it.counted = false
		q.window--
		q.windowBytes -= it.size
		q.loans.repay(it)
	}
	if it.inSide {
		it.inSide = false
		q.sideBytes -= it.size
	}
}

// spill keeps the body of an item in the side log out of memory when there is too much of it. It is read again when
// the item is claimed.
func (q *queue) spill(it *item) {
	if it.side == "" || it.claimed != nil || it.spilled || it.inSide || it.p.m.visiting {
		return
	}
	if q.sideBytes+it.size <= sideBytes {
		it.inSide = true
		q.sideBytes += it.size
		return
	}
	m := it.msg
	it.spilled, it.history = true, nil
	it.msg = &driver.Message{ID: m.ID, Topic: m.Topic, Key: m.Key, Priority: m.Priority, TTL: m.TTL, PublishedAt: m.PublishedAt}
}

// fill reads what was spilled.
func (m *member) fill(ctx context.Context, its ...*item) error {
	type spilled struct {
		it *item
		at int64
	}
	wanted := map[int32][]spilled{}
	m.mu.Lock()
	for _, it := range its {
		if it.spilled {
			wanted[it.p.id] = append(wanted[it.p.id], spilled{it, it.at})
		}
	}
	m.mu.Unlock()
	for id, ws := range wanted {
		for _, w := range ws {
			r, err := m.d.readOne(ctx, m.sideName, id, w.at)
			if err != nil {
				return err
			}
			if err := m.refill(w.it, w.at, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) refill(it *item, at int64, r *kgo.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !it.spilled || it.at != at {
		return nil
	}
	if r == nil || r.Value == nil {
		return driver.NewError(driver.ErrNotApplied, "the body of a parked message is not where it was stored", "run ferry doctor: somebody else changed an internal topic", nil)
	}
	msg, err := envelope.Decode(r.Value)
	if err != nil {
		return err
	}
	msg.Topic = m.topic.name
	it.msg, it.spilled = msg, false
	if s, ok := stateOf(r); ok {
		it.history, _ = envelope.DecodeHistory(s.History)
	}
	return nil
}
