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
	ids   index[string, firstMessage]
	until container.Heap[tick, string] // of those with the same time the first message is forgotten first
}

// firstMessage is the one that had an id first.
type firstMessage struct {
	id  string
	seq uint64
}

func newMemory(t *topic, kind byte) memory {
	return memory{t: t, kind: kind, until: container.NewHeap[tick](func(string, int32) {})}
}

// duplicate returns the receipt of a message that is known already.
func (t *topic) duplicate(e *entry) (driver.Receipt, bool) {
	if first, ok := t.ids.Get(e.id); ok {
		return driver.Receipt{ID: e.id, Ref: first.ref(), Duplicate: true}, true
	}
	first, known := firstMessage{}, false
	if e.is(ownID) && t.ownIDs.ids.len() > 0 {
		first, known = t.ownIDs.ids.get(e.id)
	}
	if !known && e.extra != nil && e.extra.dedupID != "" {
		first, known = t.dedupIDs.ids.get(e.extra.dedupID)
	}
	return driver.Receipt{ID: first.id, Ref: driver.Ref{Pos: first.seq}, Duplicate: true}, known
}

// noteDedupID remembers the dedup id of a new message.
func (t *topic) noteDedupID(e *entry, now moment) {
	if e.extra != nil && e.extra.dedupID != "" {
		t.dedupIDs.note(e.extra.dedupID, firstMessage{e.id, e.seq}, now.after(e.extra.dedupWindow), now)
	}
}

// noteOwnID keeps the own id of a message that is gone. At the bound the oldest is forgotten.
func (t *topic) noteOwnID(e *entry, now moment) {
	if t.ownIDs.ids.len() >= t.e.o.MaxIDs {
		t.ownIDs.forgetFirst()
	}
	t.ownIDs.note(e.id, firstMessage{e.id, e.seq}, now.after(t.e.o.Capabilities.IDWindow), now)
}

func (m *memory) note(id string, first firstMessage, until tick, now moment) {
	m.remember(id, first, until)
	if j := m.t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, m.kind, id)
		w := writing(j.record, now)
		(&known{first.id, first.seq, now.stamp(until)}).walk(&w)
		j.record = w.seal()
		m.t.note().Set(j.key, j.record, nil)
	}
}

func (m *memory) remember(id string, first firstMessage, until tick) {
	m.ids.put(id, first)
	m.until.Push(until, first.seq, id)
}

func (m *memory) forgetFirst() {
	id := m.until.Top()
	m.ids.remove(id)
	m.until.RemoveAt(0)
	if j := m.t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, m.kind, id)
		m.t.note().Delete(j.key)
	}
}

// forget drops what is no longer inside its window.
func (m *memory) forget(now tick) {
	for m.until.Next() <= now {
		m.forgetFirst()
	}
}
