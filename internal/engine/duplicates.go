package engine

import (
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
)

// memory is what a topic remembers in order to recognise duplicates after their messages are gone: ids of producers'
// own, or dedup ids.
type memory struct {
	t     *topic
	kind  byte // of the records
	ids   container.Table[*remembered]
	next  []*remembered                     // in order: nearly all, where all windows are as long
	until container.Heap[tick, *remembered] // those that are forgotten before the last one of next
	first tick                              // when the first one is forgotten
	spare []*remembered
}

// remembered is an id, the message that had it first, and when it is forgotten. It lies apart from the table, which
// has room for twice as many, and beside others: with all of it in the table a message with an id of its own took a
// third longer.
type remembered struct {
	id, message string
	seq         uint64
	until       tick
}

// rememberedAtOnce is how many are allocated together at most.
const rememberedAtOnce = 1024

// Name is the id, for the table.
func (r *remembered) Name() string { return r.id }

func newMemory(t *topic, kind byte) memory {
	return memory{t: t, kind: kind, first: never, ids: container.NewTable[*remembered](),
		until: container.NewHeap[tick](func(*remembered, int32) {})}
}

// duplicate returns the receipt of a message that is known already.
func (t *topic) duplicate(e *entry) (driver.Receipt, bool) {
	if first, ok := t.ids.Get(e.id); ok {
		return driver.Receipt{ID: e.id, Ref: first.ref(), Duplicate: true}, true
	}
	var first *remembered
	known := false
	if e.is(ownID) && t.ownIDs.ids.Len() > 0 {
		first, known = t.ownIDs.ids.Get(e.id)
	}
	if !known && e.extra != nil && e.extra.dedupID != "" {
		first, known = t.dedupIDs.ids.Get(e.extra.dedupID)
	}
	if !known {
		return driver.Receipt{}, false
	}
	return driver.Receipt{ID: first.message, Ref: driver.Ref{Pos: first.seq}, Duplicate: true}, true
}

// noteDedupID remembers the dedup id of a new message.
func (t *topic) noteDedupID(e *entry, now moment) {
	if e.extra != nil && e.extra.dedupID != "" {
		t.dedupIDs.note(remembered{e.extra.dedupID, e.id, e.seq, now.after(e.extra.dedupWindow)}, now)
	}
}

// noteOwnID keeps the own id of a message that is gone. At the bound the oldest is forgotten.
func (t *topic) noteOwnID(e *entry, now moment) {
	if t.ownIDs.ids.Len() >= t.e.o.MaxIDs {
		t.ownIDs.forgetFirst()
	}
	t.ownIDs.note(remembered{e.id, e.id, e.seq, now.after(t.e.o.Capabilities.IDWindow)}, now)
}

func (m *memory) note(r remembered, now moment) {
	m.remember(r)
	if j := m.t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, m.kind, r.id)
		j.known = known{r.message, r.seq, now.stamp(r.until)}
		m.t.note().Set(j.key, j.record.write(&j.known, now), nil)
	}
}

func (m *memory) remember(r remembered) {
	if len(m.spare) == 0 {
		fresh := make([]remembered, min(max(16, m.ids.Len()), rememberedAtOnce))
		for i := range fresh {
			m.spare = append(m.spare, &fresh[i])
		}
	}
	last := len(m.spare) - 1
	kept := m.spare[last]
	m.spare = m.spare[:last]
	*kept = r
	m.ids.Put(kept)
	m.first = min(m.first, r.until)
	if n := len(m.next); n == 0 || m.next[n-1].until <= r.until {
		m.next = append(m.next, kept)
	} else {
		m.until.Push(r.until, r.seq, kept)
	}
}

func (m *memory) forgetFirst() {
	var first *remembered
	if m.first == m.until.Next() {
		first = m.until.Top()
		m.until.RemoveAt(0)
	} else {
		first = m.next[0]
		m.next = popFirst(m.next)
	}
	m.ids.Remove(first)
	if m.first = m.until.Next(); len(m.next) > 0 {
		m.first = min(m.first, m.next[0].until)
	}
	if j := m.t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, m.kind, first.id)
		m.t.note().Delete(j.key)
	}
	*first = remembered{}
	if m.spare = append(m.spare, first); m.ids.Len() == 0 {
		m.spare = nil
	}
}

// forget drops what is no longer inside its window.
func (m *memory) forget(now tick) {
	for m.first <= now {
		m.forgetFirst()
	}
}
