package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// memory is what a topic remembers in order to recognise duplicates after their messages are gone.
type memory struct {
	window time.Duration // of producers' own ids
	most   int           // of producers' own ids
	own    index[ownID]
	oldest queue[string] // of own, in the order in which they are forgotten

	dedup   index[*dedupID]
	expires heap[*dedupID]
}

type ownID struct {
	seq   uint64
	until tick
}

type dedupID struct {
	id      string // what the producer calls it
	message string // the id of the first message
	seq     uint64
}

func newMemory(o Options) memory {
	return memory{window: o.Capabilities.IDWindow, most: o.MaxIDs, expires: heap[*dedupID]{moved: func(*dedupID, int32) {}}}
}

// duplicate returns the receipt of a message that is known already.
func (t *topic) duplicate(e *entry) (driver.Receipt, bool) {
	if first, ok := t.ids.get(e.id); ok {
		return driver.Receipt{ID: e.id, Ref: first.ref(), Duplicate: true}, true
	}
	if e.ownID && t.known.own.len() > 0 {
		if first, ok := t.known.own.get(e.id); ok {
			return driver.Receipt{ID: e.id, Ref: driver.Ref{Pos: first.seq}, Duplicate: true}, true
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
	m.dedup.put(d.id, d)
	m.expires.push(now.after(e.extra.dedupWindow), e.seq, d)
}

// remember keeps the own id of a message that is gone. At the bound the oldest is forgotten.
func (m *memory) remember(e *entry, now moment) {
	if m.own.len() >= m.most {
		m.forgetOldest()
	}
	m.own.put(e.id, ownID{seq: e.seq, until: now.after(m.window)})
	m.oldest.push(e.id)
}

func (m *memory) forgetOldest() {
	m.own.remove(*m.oldest.head())
	m.oldest.pop()
}

// next returns when forget has something to do.
func (m *memory) next() tick {
	n := m.expires.next()
	if !m.oldest.empty() {
		first, _ := m.own.get(*m.oldest.head())
		n = min(n, first.until)
	}
	return n
}

// forget drops what is no longer inside its window.
func (m *memory) forget(now tick) {
	for m.expires.next() <= now {
		m.dedup.remove(m.expires.top().id)
		m.expires.removeAt(0)
	}
	for !m.oldest.empty() {
		if first, _ := m.own.get(*m.oldest.head()); first.until > now {
			return
		}
		m.forgetOldest()
	}
}
