package engine

import (
	"bytes"
	"errors"
	"math"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// storedState is where a message is now, for the topic and for each group.
type storedState struct {
	messageHead
	settled int64 // wall time: since when it is kept, or when it was found that it cannot be decoded
	problem string
	items   []storedItem
	ready   item // as which all plain ones are read
}

// storedItem is a message as one group sees it.
type storedItem struct {
	*item      // as far as it is stored
	group      uint32
	state      itemState // what is in flight is stored as ready: the record of its claim tells
	plain      bool      // as it became ready: nothing else is stored
	begunClaim uint64    // the claim whose handler has begun
	resolved   uint64    // claims up to this number are over
}

const plainItem = 0xff // in place of the state

// Versions of the records of states: the oldest that has all additions which its items have, so that older programs
// read what they understand. Without additions it is recordVersion.
const (
	lossesVersion = 2
	stateVersion  = 3 // the newest
)

// Additions of an item: bits of what says whether more follows.
const (
	hasMore   = 1 << iota // history, edited content, dead letter
	hasBegun              // the number of a claim
	hasLapsed             // a lease was lost, and the count taken back
	hasEnding             // how it was settled
)

// additionsOf are the additions that each version knows.
var additionsOf = [...]byte{recordVersion: hasMore, lossesVersion: hasMore | hasBegun | hasLapsed,
	stateVersion: hasMore | hasBegun | hasLapsed | hasEnding}

// additions says what is stored of an item besides what every item has.
func (it *item) additions() (bits byte) {
	if it.more != nil {
		bits |= hasMore
	}
	if it.begun() {
		bits |= hasBegun
	}
	if it.is(leaseLost) && it.lost == 0 {
		bits |= hasLapsed
	}
	if it.more != nil && it.more.ending.known {
		bits |= hasEnding
	}
	return bits
}

// begun reports whether the handler of the item has begun.
func (it *item) begun() bool { return it.claim != nil && it.claim.begun }

// isPlain reports whether an item is just as it became ready. One in flight is: see storedItem.
func isPlain(it *item) bool {
	return (it.state == ready || it.state == inflight) && it.cause == driver.CauseFirst && it.Place == it.e.fan &&
		it.failures == 0 && !it.is(leaseLost) && it.more == nil && !it.begun()
}

// of sets a state to that of a message as it is now.
func (s *storedState) of(e *entry, now moment) {
	*s = storedState{messageHead: headOf(e, now), items: s.items[:0]}
	switch s.state = e.state; {
	case e.state == invalid:
		s.problem, s.settled = e.extra.problem, e.extra.found
	case e.state == fanned && e.settled():
		s.settled = now.at.UnixNano() // only what settles it changes it
	}
	for it := range e.all() {
		s.items = append(s.items, it.stored())
	}
}

func (it *item) stored() storedItem {
	s := storedItem{item: it, group: it.g.number, state: it.state, plain: isPlain(it), resolved: it.g.t.e.claims.Load()}
	if it.begun() {
		s.begunClaim = it.claim.number
	}
	if it.state == inflight {
		s.state, s.resolved = ready, it.claim.number-1
	}
	return s
}

// unchanged sets a state to that of a message of which only the head is stored: every group that existed when it became
// ready has it so.
func (s *storedState) unchanged(h messageHead, groups []*group) {
	*s = storedState{messageHead: h, items: s.items[:0]}
	for _, g := range groups {
		if h.state == fanned && g.since < h.fan {
			s.items = append(s.items, s.plainlyReady(g.number))
		}
	}
}

func (s *storedState) plainlyReady(group uint32) storedItem {
	s.ready.Place = s.fan
	return storedItem{item: &s.ready, group: group, state: ready, plain: true}
}

// read reads the record of a state.
func (s *storedState) read(record []byte, now moment) error {
	*s = storedState{items: s.items[:0]}
	w := unseal(record, stateVersion, now)
	s.walk(w)
	return w.end()
}

func (s *storedState) walk(w *walk) {
	n := uint64(len(s.items))
	w.head(&s.messageHead, invalid)
	number(w, &s.settled)
	w.texts(&s.problem)
	w.uints(&n)
	for i := 0; uint64(i) < n && w.err == nil; i++ {
		if w.reading {
			s.items = append(s.items, storedItem{})
		}
		s.items[i].walk(w, s)
	}
}

// walk says of an item what is not as it was when its message became ready.
func (it *storedItem) walk(w *walk, of *storedState) {
	count(w, &it.group, math.MaxUint32)
	if it.plain = !w.reading && it.plain || w.more() && w.data[0] == plainItem; it.plain {
		if !w.reading {
			w.data = append(w.data, plainItem)
			return
		}
		w.data, *it = w.data[1:], of.plainlyReady(it.group)
		return
	}
	if w.reading {
		it.item = &item{}
	}
	count(w, &it.state, uint64(done))
	count(w, &it.cause, uint64(driver.CauseFailover))
	w.flags(&it.Tail)
	w.uints(&it.Place)
	w.tick(&it.at)
	count(w, &it.failures, math.MaxInt32)
	count(w, &it.lost, math.MaxUint16)
	rounds := it.rounds()
	count(w, &rounds, math.MaxUint16)
	w.uints(&it.resolved)
	bits := it.additions()
	for !w.reading && bits > additionsOf[w.data[0]] {
		w.data[0]++
	}
	count(w, &bits, uint64(additionsOf[w.version]))
	if bits&hasBegun != 0 {
		w.uints(&it.begunClaim)
	}
	if w.reading {
		it.set(leaseLost, it.lost > 0 || bits&hasLapsed != 0)
	}
	if bits&hasEnding != 0 {
		x := &it.record().ending
		x.known = true
		count(w, &x.took, math.MaxInt64)
		w.texts(&x.by)
	}
	if bits&hasMore != 0 {
		it.record().rounds = rounds
		if it.more.walk(w); w.reading && it.more.empty() {
			it.more = nil
		}
	}
	switch {
	case it.state == inflight:
		w.fail(errors.New("an item in flight is never stored"))
	case it.state == dead && (it.more == nil || it.more.dead == nil):
		w.fail(errors.New("a dead letter has no record"))
	}
}

// empty reports whether nothing was stored: what is heard of holders is not.
func (r *record) empty() bool {
	return r.history == nil && r.edited == nil && r.dead == nil && r.rounds == 0 && !r.ending.known
}

// walk goes over what few items have. Content that an operator wrote is an envelope of its own.
func (r *record) walk(w *walk) {
	var history, edited, dl []byte
	if !w.reading {
		history = envelope.AppendHistory(nil, r.history...)
		if r.edited != nil {
			edited = envelope.Append(nil, r.edited.message("", r.edited))
		}
		if r.dead != nil {
			dl = envelope.AppendDeadLetter(nil, r.dead)
		}
	}
	w.uints(&r.buried)
	w.bytes(&history)
	w.bytes(&edited)
	if w.bytes(&dl); !w.reading || w.err != nil {
		return
	}
	var err error
	r.history, err = envelope.DecodeHistory(history)
	if len(edited) > 0 && err == nil {
		var m *driver.Message
		if m, err = envelope.Decode(bytes.Clone(edited)); err == nil {
			r.edited = contentOf(m)
		}
	}
	if len(dl) > 0 && err == nil {
		r.dead, err = envelope.DecodeDeadLetter(dl)
	}
	if err != nil {
		w.fail(err)
	}
}
