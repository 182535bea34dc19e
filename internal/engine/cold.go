package engine

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/ferrymq/ferry/driver"
)

// A backlog is larger than memory. Where there is a store, only a window of the ready messages of a topic is in memory;
// what lies behind it is cold: known as stretches of the log, and read in order when the window runs low (thaw.go).
//
// Cold are plain messages only: just published, ready for every group, of normal priority, without a TTL. As long as
// one is cold, all plain ones that follow are cold too, so that they stay in order. Everything else stays in memory. If
// it comes behind what is cold, in its lane or in its key, it waits for that (behind.go). In the store a cold message
// looks like any other: opening it decides again what is cold.

// coldTail is what a topic has in the store only.
type coldTail struct {
	stretches []stretch
	count     int
	ids       coldIDs
	keys      coldKeys
	open      []uint64      // hashes of the ids of the newest stretch, if it may be recorded
	loading   chan struct{} // closed when the store has been read; nil: nobody reads it
	loaded    uint64        // up to which place of the log it is read
	melting   int           // calls that need everything in memory: nothing becomes cold
}

// stretch is some messages that follow each other. Others that are in memory may lie between them.
type stretch struct {
	first, last uint64 // in the log
	count       int
	bytes       int64
	place       uint64 // of the first, among what became ready
	lastPlace   uint64 // and of the last
	due         tick   // when the first became ready
	recorded    bool   // the store has a record of it
}

// stretchBytes bounds how much content is read at once.
const stretchBytes = 2 << 20

// stretchSize is how many messages are read at once: a part of the window.
func (t *topic) stretchSize() int { return min(max(t.e.o.Window/8, 1), 1024) }

// goesCold reports whether a new message that is due stays in the store only.
func (t *topic) goesCold(e *entry) bool {
	c := &t.cold
	if t.journal == nil || t.e.o.Window == 0 || c.melting > 0 || e.priority != driver.Normal || e.expiry != nil ||
		e.extra != nil && e.extra.raw != nil || !c.ids.covers(e.seq) {
		return false
	}
	return t.wantsCold(math.MaxUint64)
}

// wantsCold reports whether there are groups for which something becomes ready at a place, and each of them has enough
// to do, or reads what is cold anyhow before it comes to that.
func (t *topic) wantsCold(place uint64) (seen bool) {
	for _, g := range t.groups {
		if g.since >= place {
			continue
		}
		if seen = true; g.cold == 0 && g.window() < t.e.o.Window {
			return false
		}
	}
	return seen
}

// window returns how many ready items of the normal lane are in memory and wait for nothing that is cold.
func (g *group) window() int { return g.normal - g.behind.Len() }

// fanCold gives a message to all groups without keeping it. It is found by its id until the step ends.
func (t *topic) fanCold(e *entry, now moment) {
	t.touch(e)
	e.state, e.fan, e.due = cold, t.nextPlace(), now.tick
	t.stats.Fanned++
	for _, g := range t.groups {
		g.stats.Received++
		g.count[ready]++
		g.cold++
		if g.awaited() {
			g.wakeLater()
		}
	}
	t.addCold(e.seq, e.fan, e.due, e.size(), t.cold.ids.hash(e.id), now)
	t.cold.keys.note(e.key, e.fan)
}

// forgetCold ends the step that made a message cold: from now on it is in the store only.
func (t *topic) forgetCold(e *entry) {
	t.ids.Remove(e)
	t.cold.ids.add(t.cold.ids.hash(e.id), e.seq)
	if it := e.items; it != nil && it.is(besideEntry) && cap(e.body) <= maxSpentBody {
		it.e = e
		it.set(besideEntry, false)
		t.e.spent.pool.Put(it) // nobody else has seen it
	}
}

// addCold appends a message. Its id is noted apart.
func (t *topic) addCold(seq, place uint64, due tick, size int64, hash uint64, now moment) {
	c, most := &t.cold, t.stretchSize()
	c.count++
	n := len(c.stretches)
	if n == 0 || c.stretches[n-1].recorded || c.stretches[n-1].count >= most ||
		c.stretches[n-1].bytes >= stretchBytes || c.loading != nil && c.loaded >= c.stretches[n-1].last {
		t.closeStretch(now)
		c.stretches = append(c.stretches, stretch{first: seq, place: place, due: due})
		c.open = c.open[:0]
		n++
	}
	c.open = append(c.open, hash)
	s := &c.stretches[n-1]
	s.last, s.lastPlace = seq, place
	s.count++
	s.bytes += size
}

// countCold counts messages that the store has already, and that stay there only. What became ready at a place is cold
// for every group that was there before.
func (t *topic) countCold(n int, bytes int64, place uint64) {
	t.stats.Messages += int64(n)
	t.stats.Bytes += bytes
	for _, g := range t.groups {
		if g.since < place {
			g.count[ready] += int64(n)
			g.cold += int64(n)
		}
	}
}

// search returns the index of the first stretch that does not end before a place, or how many there are.
func (c *coldTail) search(seq uint64) int {
	return sort.Search(len(c.stretches), func(i int) bool { return c.stretches[i].last >= seq })
}

// find returns the index of the stretch that may contain a message, or -1.
func (c *coldTail) find(seq uint64) int {
	if i := c.search(seq); i < len(c.stretches) && c.stretches[i].first <= seq {
		return i
	}
	return -1
}

// entries are what lies behind a place of the log, in order: what is in memory, and nil for each place in a stretch of
// which nothing is, where something cold may lie.
func (t *topic) entries(at uint64) iter.Seq2[uint64, *entry] {
	return func(yield func(at uint64, e *entry) bool) {
		for {
			s := stretch{first: math.MaxUint64}
			if i := t.cold.search(at + 1); i < len(t.cold.stretches) {
				s = t.cold.stretches[i]
			}
			from := max(s.first, at+1)
			for seq, e := range t.log.after(at) {
				if seq >= from {
					break
				}
				if !yield(seq, e) {
					return
				}
			}
			if s.last == 0 {
				return
			}
			for at = from; at <= s.last; at++ {
				if !yield(at, t.log.get(at)) {
					return
				}
			}
			at = s.last
		}
	}
}

// takeCold notes that so many messages of a stretch are in memory now, or gone.
func (t *topic) takeCold(i, count int, bytes int64) {
	c := &t.cold
	s := &c.stretches[i]
	if s.recorded { // it is no longer whole
		s.recorded = false
		t.removeStretch(s.first)
	}
	s.count -= count
	s.bytes -= bytes
	c.count -= count
	switch {
	case s.count > 0:
	case i == 0:
		c.stretches = popFirst(c.stretches)
	default:
		c.stretches = slices.Delete(c.stretches, i, i+1)
	}
	if c.count == 0 {
		c.ids.clear()
		c.keys = coldKeys{}
	}
}

// nextCold returns the first stretch of which the group sees something, or nil.
func (g *group) nextCold() *stretch {
	if g.cold == 0 {
		return nil
	}
	vs := g.t.cold.stretches
	return &vs[min(sort.Search(len(vs), func(i int) bool { return vs[i].lastPlace > g.since }), len(vs)-1)]
}

// frontier is the place of the first message that is cold for the group, or a little less: what has a lower place comes
// before all of them.
func (g *group) frontier() uint64 {
	if s := g.nextCold(); s != nil {
		return s.place
	}
	return math.MaxUint64
}

// first returns a place in the log before which nothing is.
func (t *topic) first() uint64 {
	if t.cold.count == 0 {
		return t.log.first()
	}
	first := t.cold.stretches[0].first
	if t.log.count > 0 {
		first = min(first, t.log.first())
	}
	return first
}

// coldKeys tells, of the keys of cold messages, up to which place one of them may be cold.
type coldKeys struct {
	last  []uint64 // by a hash of the key
	least uint64   // for all keys
}

const coldKeyCount = 1 << 14

// note notes that a message with a key is cold, or waits for one that is.
func (k *coldKeys) note(key string, place uint64) {
	if key == "" {
		return
	}
	if k.last == nil {
		k.last = make([]uint64, coldKeyCount)
	}
	n := stableHash(0, key) % coldKeyCount
	k.last[n] = max(k.last[n], place)
}

// upTo returns the highest place at which a message with this key may be cold.
func (k *coldKeys) upTo(key string) uint64 {
	if k.last == nil {
		return k.least
	}
	return max(k.least, k.last[stableHash(0, key)%coldKeyCount])
}
