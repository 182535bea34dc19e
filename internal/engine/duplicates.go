package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
)

// memory is what a topic remembers in order to recognise duplicates after their messages are gone.
type memory struct {
	t      *topic
	window time.Duration         // of producers' own ids
	most   int                   // of producers' own ids
	own    index[string, uint64] // their places in the log
	oldest queue[usedID]         // of own, in the order in which they are forgotten

	dedup   index[string, *dedupID]
	expires container.Heap[tick, *dedupID]
}

type usedID struct {
	id    string
	until tick
}

type dedupID struct {
	id      string // what the producer calls it
	message string // the id of the first message
	seq     uint64
}

func newMemory(o Options, t *topic) memory {
	return memory{t: t, window: o.Capabilities.IDWindow, most: o.MaxIDs,
		expires: container.NewHeap[tick](func(*dedupID, int32) {})}
}

// duplicate returns the receipt of a message that is known already.
func (t *topic) duplicate(e *entry) (driver.Receipt, bool) {
	if first, ok := t.ids.Get(e.id); ok {
		return driver.Receipt{ID: e.id, Ref: first.ref(), Duplicate: true}, true
	}
	if e.is(ownID) && t.known.own.len() > 0 {
		if first, ok := t.known.own.get(e.id); ok {
			return driver.Receipt{ID: e.id, Ref: driver.Ref{Pos: first}, Duplicate: true}, true
		}
	}
	if e.extra != nil && e.extra.dedupID != "" {
		if first, ok := t.known.dedup.get(e.extra.dedupID); ok {
			return driver.Receipt{ID: first.message, Ref: driver.Ref{Pos: first.seq}, Duplicate: true}, true
		}
	}
	return driver.Receipt{}, false
}

// note remembers the dedup id of a new message.
func (m *memory) note(e *entry, now moment) {
	if e.extra == nil || e.extra.dedupID == "" {
		return
	}
	d := &dedupID{id: e.extra.dedupID, message: e.id, seq: e.seq}
	until := now.after(e.extra.dedupWindow)
	m.dedup.put(d.id, d)
	m.expires.Push(until, e.seq, d)
	m.t.noteKnown(kindDedup, d.id, known{d.message, d.seq, now.stamp(until)})
}

// remember keeps the own id of a message that is gone. At the bound the oldest is forgotten.
func (m *memory) remember(e *entry, now moment) {
	if m.own.len() >= m.most {
		m.forgetOldest()
	}
	until := now.after(m.window)
	m.own.put(e.id, e.seq)
	m.oldest.push(usedID{id: e.id, until: until})
	m.t.noteKnown(kindOwnID, e.id, known{e.id, e.seq, now.stamp(until)})
}

func (m *memory) forgetOldest() {
	id := m.oldest.head().id
	m.own.remove(id)
	m.oldest.pop()
	m.t.noteForgotten(kindOwnID, id)
}

// next returns when forget has something to do.
func (m *memory) next() tick {
	n := m.expires.Next()
	if !m.oldest.empty() {
		n = min(n, m.oldest.head().until)
	}
	return n
}

// forget drops what is no longer inside its window.
func (m *memory) forget(now tick) {
	for m.expires.Next() <= now {
		id := m.expires.Top().id
		m.dedup.remove(id)
		m.expires.RemoveAt(0)
		m.t.noteForgotten(kindDedup, id)
	}
	for !m.oldest.empty() && m.oldest.head().until <= now {
		m.forgetOldest()
	}
}

// noteKnown has an id stored that is to be remembered.
func (t *topic) noteKnown(kind byte, id string, k known) {
	if j := t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, kind, id)
		w := writing(j.record, moment{})
		k.walk(&w)
		j.record = w.seal()
		t.note().Set(j.key, j.record, nil)
	}
}

// noteForgotten has an id removed that is no longer needed.
func (t *topic) noteForgotten(kind byte, id string) {
	if j := t.journal; j != nil {
		j.key = appendTextKey(j.key[:0], j.number, kind, id)
		t.note().Delete(j.key)
	}
}
