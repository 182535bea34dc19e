package engine

import "slices"

// What a topic keeps in memory of a message is where it is; its content is in the store and read when it is claimed.
// The content of new messages is kept as long as there is room, so that a queue that is read as fast as it is written
// never reads from the store.

// evictable is a message whose content must stay until it can be read from the store.
type evictable struct {
	e     *entry
	round Round
}

// cache keeps the content of new messages if there is room, and otherwise until they can be read. Their batch is
// the last one that was appended.
func (t *topic) cache(fresh []*entry) {
	j := t.journal
	for i, e := range fresh {
		fresh[i] = nil
		if e.state == cold {
			t.forgetCold(e)
			continue
		}
		if e.extra != nil && e.extra.raw != nil || e.is(cached) {
			continue // not decoded yet, or counted already
		}
		n := e.size()
		if t.e.cached.Add(n) <= t.e.o.CacheBytes {
			e.flags |= cached
			continue
		}
		t.e.cached.Add(-n)
		j.evict = append(j.evict, evictable{e, j.last})
	}
}

// uncache gives room back that a message took.
func (t *topic) uncache(e *entry) {
	if e.is(cached) {
		e.flags &^= cached
		t.e.cached.Add(-e.size())
	}
}

// cool lets go of the content of a message that is settled and kept.
func (t *topic) cool(e *entry) {
	if j := t.journal; j != nil && j.last != nil && !e.is(onDisk) {
		j.evict = append(j.evict, evictable{e, j.last})
	}
}

// evictWritten drops the content of messages that can be read from the store now.
func (t *topic) evictWritten() {
	j := t.journal
	n := 0
	for ; n < len(j.evict) && j.evict[n].round.Readable(); n++ {
		t.evict(j.evict[n].e)
	}
	j.evict = slices.Delete(j.evict, 0, n)
}

// evict drops the content of a message. Claims have a copy of it.
func (t *topic) evict(e *entry) {
	if e.state == atRest || e.is(onDisk) || !e.is(saved) || e.extra != nil && e.extra.raw != nil {
		return
	}
	t.uncache(e)
	n := e.size()
	e.flags = e.flags&^scheduled | onDisk
	e.body, e.contentType, e.extra, e.when, e.stored = nil, nil, nil, 0, uint32(n)
}
