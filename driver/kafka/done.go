package kafka

import (
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"slices"
)

// maxMetadata is what a broker stores beside a committed offset by default (offset.metadata.max.bytes).
const maxMetadata = 4096

// doneSet is which offsets of a partition are done: all below base, and some beyond it.
type doneSet struct {
	base  int64 // the lowest that is not done: what is committed
	next  int64 // the next offset expected from a fetch
	first int64 // offset of bit 0, a multiple of 64
	words []uint64
	count int64 // done beyond base
	// replay is the offset before which everything was delivered already, and is again after a reset.
	replay int64
	clean  bool // the last owner left in order
	// before is what an earlier owner had delivered or got back, by offset of the main topic and of the side log.
	before map[place]byte
}

func newDoneSet(at int64) *doneSet {
	return &doneSet{base: at, next: at, first: at &^ 63}
}

// clone returns a copy that can be changed.
func (s *doneSet) clone() *doneSet {
	c := *s
	c.words = slices.Clone(s.words)
	return &c
}

func (s *doneSet) has(off int64) bool {
	if off < s.base {
		return true
	}
	w := (off - s.first) >> 6
	return w < int64(len(s.words)) && s.words[w]&(1<<uint(off&63)) != 0
}

func (s *doneSet) set(off int64) {
	if s.has(off) {
		return
	}
	w := int((off - s.first) >> 6)
	for len(s.words) <= w {
		s.words = append(s.words, 0)
	}
	s.words[w] |= 1 << uint(off&63)
	s.count++
	for s.has(s.base) && s.count > 0 {
		s.base++
		s.count--
	}
	if w := int((s.base - s.first) >> 6); w >= 64 {
		s.words = append(s.words[:0], s.words[min(w, len(s.words)):]...)
		s.first += int64(w) << 6
	}
}

// skipTo marks what a fetch left out before off (compacted, or markers of transactions) as done.
func (s *doneSet) skipTo(off int64) {
	for ; s.next < off; s.next++ {
		s.set(s.next)
	}
}

// encode writes what is done beyond base as text of at most room bytes: run lengths, not done first. What does not fit
// is left out: after a crash it is delivered again.
func (s *doneSet) encode(room int) string {
	if s.count == 0 {
		return ""
	}
	limit := base64.RawStdEncoding.DecodedLen(max(0, room-len(runPrefix))) - binary.MaxVarintLen64
	var buf []byte
	end := s.first + int64(len(s.words))<<6
	for at := s.base; at < end && len(buf) < limit-binary.MaxVarintLen64; {
		gap := s.run(at, end, false)
		if at+gap >= end {
			break
		}
		full := s.run(at+gap, end, true)
		buf = binary.AppendUvarint(buf, uint64(gap))
		buf = binary.AppendUvarint(buf, uint64(full))
		at += gap + full
	}
	return runPrefix + base64.RawStdEncoding.EncodeToString(buf)
}

const runPrefix = "f1"

// run is how many offsets from at on are done, or not.
func (s *doneSet) run(at, end int64, done bool) int64 {
	from := at
	for at < end {
		word := s.words[(at-s.first)>>6] >> uint(at&63)
		if done {
			word = ^word
		}
		if n := int64(bits.TrailingZeros64(word)); n < 64-at&63 {
			return min(at+n, end) - from
		}
		at = at&^63 + 64
	}
	return end - from
}

// decode adds what encode wrote for the same base. Text of others is ignored.
func (s *doneSet) decode(text string) {
	if len(text) < len(runPrefix) || text[:len(runPrefix)] != runPrefix {
		return
	}
	buf, err := base64.RawStdEncoding.DecodeString(text[len(runPrefix):])
	if err != nil {
		return
	}
	at := s.base
	for done := false; len(buf) > 0; done = !done {
		n, size := binary.Uvarint(buf)
		if size <= 0 || n > 1<<20 {
			return
		}
		buf = buf[size:]
		for i := int64(0); done && i < int64(n); i++ {
			s.set(at + i)
		}
		at += int64(n)
	}
}
