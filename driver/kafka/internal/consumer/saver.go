package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// saver stores items of a member in the retry log, where that must be, and reads them back.
type saver struct{ *member }

// divertAfter is how long the head of a key must wait for its followers to go to the retry log. They leave the main
// topic, so that a key that fails for long holds up neither its offsets nor the window.
const divertAfter = time.Second

// diverts reports whether an item waits behind a head of its key that waits for long.
func (q *queue) diverts(it *Item) bool {
	if !q.blocks(it) || it.state != ready || it.logKey != "" {
		return false
	}
	head := q.scheduled.Head(it.Msg.Key)
	return head != nil && head != it && head.state == waiting && time.Until(head.due) > divertAfter
}

// divertFollowers moves what was fetched before its head failed.
func (m saver) divertFollowers(it *Item) {
	if !m.blocks(it) {
		return
	}
	for x := range m.scheduled.Members(it.Msg.Key) { // none: its partition goes, and what was behind it with it
		if m.diverts(x) {
			m.suspects = append(m.suspects, x)
		}
	}
	if len(m.suspects) > 0 {
		m.saving.Give()
	}
}

// keepSaving stores items in the retry log that need not wait for it, until the member leaves.
func (m saver) keepSaving(ctx context.Context) {
	m.saving.Each(ctx, func() { m.saver.saveSuspects(ctx) })
}

// saveSuspects stores what the crash of an earlier owner cost, and what is parked.
func (m saver) saveSuspects(ctx context.Context) {
	m.mu.Lock()
	suspects := m.suspects
	m.suspects = nil
	m.mu.Unlock()
	for _, it := range suspects {
		m.saver.saveLater(ctx, it)
	}
}

// saveLater stores an item as it is, without waiting for it.
func (m saver) saveLater(ctx context.Context, it *Item) {
	if m.saver.fill(ctx, it) != nil {
		return // it is in the retry log, with older counters
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
	r := m.retryRecord(it, s)
	it.saving = true
	m.mu.Unlock()
	m.d.cluster.Client.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		m.mu.Lock()
		end := m.saver.stored(it, r, changes, err)
		m.mu.Unlock()
		m.saver.storeEnds(end)
		m.windowFreed.Give()
	})
}

// stored is told what became of an item's record, and returns the end of one that was settled meanwhile.
func (m saver) stored(it *Item, r *kgo.Record, changes uint32, err error) (end *kgo.Record) {
	it.saving = false
	m.wakeAll()
	switch {
	case err != nil: // it is still in the main topic, or in the retry log with older counters
	case it.p.lost: // the next owner reads it
	case it.state == gone:
		end = m.endOf(it)
		it.p.noteEnded(it)
	default:
		it.p.saved(it, r)
		m.spill(it)
		if it.changes != changes { // once more meanwhile
			m.saver.suspect(it)
			m.saving.Give()
		}
	}
	return end
}

// suspect notes an item whose losses must be stored.
func (m saver) suspect(it *Item) {
	it.unsaved = true
	m.suspects = append(m.suspects, it)
}

// awaitSaved stores items as they are, and waits for it.
func (m saver) awaitSaved(ctx context.Context, its []*Item) {
	for range 2 { // what was on its way already may be older
		for _, it := range its {
			m.saver.saveLater(ctx, it)
		}
		if m.until(ctx, func() bool {
			saving := slices.ContainsFunc(its, func(it *Item) bool { return it.saving })
			its = slices.DeleteFunc(its, func(it *Item) bool { return !it.unsaved && !it.tailUnsaved })
			return !saving
		}) != nil {
			return
		}
	}
}

// Bounds of what a member has in memory: fetched and not in the retry log, in the retry log with its body, and in all.
const (
	windowBytes = 64 << 20
	logBytes    = 32 << 20
	maxItems    = 1_000_000
)

// full reports whether no more may be fetched for now.
func (m *member) full() bool {
	return m.window >= cluster.WindowItems || m.windowBytes >= windowBytes || m.items >= maxItems
}

// count adds an item to the window.
func (q *queue) count(it *Item) {
	it.counted = true
	q.window++
	q.windowBytes += it.size
}

func (q *queue) uncount(it *Item) {
	if it.counted {
		it.counted = false
		q.window--
		q.windowBytes -= it.size
		q.buffers.release(it)
	}
	if it.logged {
		it.logged = false
		q.logBytes -= it.size
	}
}

// spill keeps the body of an item in the retry log out of memory when there is too much of it. It is read again when
// the item is claimed.
func (q *queue) spill(it *Item) {
	if it.logKey == "" || it.claimed != nil || it.spilled || it.logged || !it.p.m.tenure.spills() {
		return
	}
	if q.logBytes+it.size <= logBytes {
		it.logged = true
		q.logBytes += it.size
		return
	}
	m := it.Msg
	it.spilled, it.history = true, nil
	it.Msg = &driver.Message{ID: m.ID, Topic: m.Topic, Key: m.Key, Priority: m.Priority, TTL: m.TTL,
		PublishedAt: m.PublishedAt}
}

// fill reads what was spilled.
func (m saver) fill(ctx context.Context, its ...*Item) error {
	type spilled struct {
		it *Item
		at int64
	}
	var wanted []spilled
	m.mu.Lock()
	for _, it := range its {
		if it.spilled {
			wanted = append(wanted, spilled{it, it.logOffset})
		}
	}
	m.mu.Unlock()
	for _, w := range wanted {
		r, err := m.d.cluster.ReadOne(ctx, m.retryName, w.it.p.id, w.at)
		if err == nil {
			err = m.saver.refill(w.it, w.at, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m saver) refill(it *Item, at int64, r *kgo.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !it.spilled || it.logOffset != at {
		return nil
	}
	if r == nil || r.Value == nil {
		return driver.NewError(driver.ErrNotApplied, "the body of a parked message is not where it was stored",
			"run ferry doctor: somebody else changed an internal topic", nil)
	}
	msg, history, err := contentOf(m.topic.Name, r)
	if err == nil {
		it.Msg, it.history, it.spilled = msg, history, false
	}
	return err
}
