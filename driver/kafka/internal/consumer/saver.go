package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
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
			m.saver.saveSoon(x)
		}
	}
}

// keepSaving stores in the retry log what need not wait for it, until the member leaves.
func (m saver) keepSaving(ctx context.Context) {
	m.saving.Each(ctx, func() { m.saver.flush(ctx) })
}

// flush begins to store what waits for that.
func (m saver) flush(ctx context.Context) {
	m.mu.Lock()
	suspects, ends := m.suspects, m.ends
	m.suspects, m.ends = nil, nil
	m.mu.Unlock()
	for _, r := range ends {
		m.d.cluster.Client.Produce(context.Background(), r, nil)
	}
	for _, it := range suspects {
		m.saver.saveLater(ctx, it)
	}
}

// saveSoon has an item stored as it is.
func (m saver) saveSoon(it *Item) {
	m.suspects = append(m.suspects, it)
	m.saving.Give()
}

// saving is a state of an item on its way to the retry log.
type saving struct {
	it      *Item
	r       *kgo.Record
	changes uint32
	begins  *claim // whose handler is about to start; nil: none
}

// save prepares to store an item in a state. What becomes of it, stored has to be told.
func (m saver) save(it *Item, s record.State, begins *claim) saving {
	it.saving = true
	return saving{it, m.retryRecord(it, s), it.changes, begins}
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
	s := it.now()
	if it.state == waiting {
		s.After = max(0, time.Until(it.due))
	}
	x := m.saver.save(it, s, nil)
	m.mu.Unlock()
	m.d.cluster.Client.Produce(context.Background(), x.r, func(_ *kgo.Record, err error) { m.saver.stored(x, err) })
}

// stored is told what became of an item's record. A message that was settled meanwhile ends there too.
func (m saver) stored(x saving, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	it, c := x.it, x.begins
	it.saving = false
	m.wakeAll()
	switch {
	case err != nil: // it is still in the main topic, or in the retry log with older counters
	case it.p.lost: // the next owner reads it
	case it.state == gone:
		m.saver.endLater(m.endOf(it))
		it.p.noteEnded(it)
	default:
		it.p.saved(it, x.r)
		m.spill(it)
		if it.changes != x.changes { // once more meanwhile
			it.p.suspect(it)
		}
		if c != nil && c.ended { // it went back, or was lost, before it began
			m.unbegin(it)
		} else if c != nil {
			c.begun, c.logKey = true, it.logKey
		}
	}
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
	return m.window >= cluster.WindowItems || m.windowBytes >= windowBytes ||
		m.counts[ready]+m.counts[inflight]+m.counts[waiting] >= maxItems
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
		it.unshare()
	}
	if it.logged {
		it.logged = false
		q.logBytes -= it.size
	}
	q.wakeAll() // poll may wait for room
}

// spill keeps the body of an item in the retry log out of memory when there is too much of it. It is read again when
// the item is claimed.
func (q *queue) spill(it *Item) {
	if it.logKey == "" || it.claimed != nil || it.spilled || it.logged || it.p.m.Visit {
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
	for _, it := range its {
		m.mu.Lock()
		spilled, at := it.spilled, it.logOffset
		m.mu.Unlock()
		if !spilled {
			continue
		}
		r, err := m.d.cluster.ReadOne(ctx, m.retryName, it.p.id, at)
		if err != nil {
			return err
		}
		msg, history, err := contentOf(m.topic.Name, r)
		m.mu.Lock()
		if moved := !it.spilled || it.logOffset != at; moved {
			err = nil
		} else if err == nil {
			it.Msg, it.history, it.spilled = msg, history, false
		}
		m.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
