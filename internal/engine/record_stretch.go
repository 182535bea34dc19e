package engine

import (
	"encoding/binary"
	"fmt"
)

// A stretch that is full and without gaps has a record of its own, with what must be known of its messages, so that
// opening the store need not read them. It is removed with the step that brings the first of them into memory: batches
// take effect in their order, so as long as it is there all of its messages are, and are as they were published.

// storedStretch is a stretch and the hashes of the ids of its messages.
type storedStretch struct {
	stretch
	seed   uint64
	hashes []uint64
}

// closeStretch has the newest stretch recorded, before another one begins.
func (t *topic) closeStretch(now moment) {
	c := &t.cold
	n := len(c.stretches.vs)
	if n == 0 {
		return
	}
	s := &c.stretches.vs[n-1]
	if s.recorded || s.last-s.first+1 != uint64(s.count) || len(c.open) != s.count || c.loading != nil &&
		c.loaded >= s.first {
		return
	}
	s.recorded = true
	j := t.journal
	j.value = appendStretch(j.value[:0], &storedStretch{*s, c.ids.seed, c.open}, now)
	t.note().Set(j.numberKey(kindStretch, s.first), j.value, nil)
}

// openStretch has the record of a stretch removed, because it is no longer whole.
func (t *topic) openStretch(s *stretch) {
	if s.recorded {
		s.recorded = false
		t.removeStretch(s.first)
	}
}

// removeStretch has the record removed of the stretch that begins with a message.
func (t *topic) removeStretch(first uint64) {
	t.note().Delete(t.journal.numberKey(kindStretch, first))
	t.journal.thawed = true
}

func appendStretch(dst []byte, s *storedStretch, now moment) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	for _, n := range [...]uint64{s.seed, s.last, uint64(s.bytes), s.place, s.lastPlace} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = binary.AppendVarint(dst, now.stamp(s.due))
	for _, h := range s.hashes {
		dst = binary.LittleEndian.AppendUint64(dst, h)
	}
	return seal(dst, start)
}

// decodeStretch reads what appendStretch wrote.
func decodeStretch(first uint64, record []byte, now moment) (storedStretch, error) {
	r := unseal(record)
	s := storedStretch{seed: r.uint()}
	s.stretch = stretch{first: first, last: r.uint(), bytes: int64(r.upTo(1 << 62)), place: r.uint(), lastPlace: r.uint(),
		recorded: true}
	s.due = now.read(r.int())
	for len(r.rest) >= 8 && r.err == nil {
		s.hashes = append(s.hashes, binary.LittleEndian.Uint64(r.rest))
		r.rest = r.rest[8:]
	}
	s.count = len(s.hashes)
	if r.err == nil && (s.count == 0 || s.last-s.first+1 != uint64(s.count) || s.lastPlace < s.place) {
		r.err = fmt.Errorf("%d messages do not fit between 0-%d and 0-%d", s.count, s.first, s.last)
	}
	return s, r.end()
}
