package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// MaxMetadata is what a broker stores beside a committed offset by default (offset.metadata.max.bytes).
const MaxMetadata = 4096

// Set is which offsets of a partition are done: all below base, and some beyond it.
type Set struct {
	Base  int64 // the lowest that is not done: what is committed
	Next  int64 // the next offset expected from a fetch
	first int64 // offset of bit 0, a multiple of 64
	words []uint64
	Count int64 // done beyond base
	Seen  int32 // the leader epoch of the last record that was read, or -1; see Overlaid
	// Replay is the offset before which everything was delivered already, and is again after a reset.
	Replay int64
	Clean  bool // the last owner left in order
	// Before is what an earlier owner had delivered or got back, by offset of the main topic and of the retry log.
	Before map[Location]byte
}

// NewSet has all done before an offset.
func NewSet(at int64) *Set {
	return &Set{Base: at, Next: at, first: at &^ 63, Seen: -1}
}

// Committed is what is done by what was committed of a partition.
func Committed(at kadm.Offset) *Set {
	s := NewSet(max(0, at.At))
	s.ReadMetadata(at.Metadata)
	s.Seen = at.LeaderEpoch
	return s
}

// Clone returns a copy that can be changed.
func (s *Set) Clone() *Set {
	c := *s
	c.words = slices.Clone(s.words)
	return &c
}

// Has reports whether an offset is done.
func (s *Set) Has(off int64) bool {
	if off < s.Base {
		return true
	}
	w := (off - s.first) >> 6
	return w < int64(len(s.words)) && s.words[w]&(1<<uint(off&63)) != 0
}

// Set notes that an offset is done.
func (s *Set) Set(off int64) {
	if s.Has(off) {
		return
	}
	w := int((off - s.first) >> 6)
	for len(s.words) <= w {
		s.words = append(s.words, 0)
	}
	s.words[w] |= 1 << uint(off&63)
	s.Count++
	for s.Has(s.Base) && s.Count > 0 {
		s.Base++
		s.Count--
	}
	if w := int((s.Base - s.first) >> 6); w >= 64 {
		s.words = append(s.words[:0], s.words[min(w, len(s.words)):]...)
		s.first += int64(w) << 6
	}
}

// Add notes that what is done in another set is done.
func (s *Set) Add(other *Set) {
	for off, end := s.Base, other.Known(); off < end; off++ {
		if other.Has(off) {
			s.Set(off)
		}
	}
}

// SkipTo notes that what a fetch left out before off (compacted, or ends of transactions) is done.
func (s *Set) SkipTo(off int64) {
	for ; s.Next < off; s.Next++ {
		s.Set(s.Next)
	}
}

// Encode writes what is done beyond base as text of at most so many bytes: run lengths or bits, whichever tells more or
// is shorter. What does not fit is left out: the next owner delivers it again.
func (s *Set) Encode(most int) string {
	if s.Count == 0 {
		return ""
	}
	limit := base64.RawStdEncoding.DecodedLen(max(0, most-len(runPrefix)))
	runs, told := s.runs(limit)
	if bits, n := s.bits(limit); n > told || n == told && len(bits) < len(runs) {
		return bitPrefix + base64.RawStdEncoding.EncodeToString(bits)
	}
	return runPrefix + base64.RawStdEncoding.EncodeToString(runs)
}

// How the text of a done-set begins.
const (
	runPrefix = "f1" // lengths of runs, not done first
	bitPrefix = "f2" // a bit for each offset from base on
)

// runs are the lengths of runs, not done first, and how many done offsets they tell of.
func (s *Set) runs(limit int) (buf []byte, told int64) {
	end := s.first + int64(len(s.words))<<6
	for at := s.Base; at < end && len(buf) <= limit-2*binary.MaxVarintLen64; {
		gap := s.run(at, end, false)
		if at+gap >= end {
			break
		}
		full := s.run(at+gap, end, true)
		buf = binary.AppendUvarint(buf, uint64(gap))
		buf = binary.AppendUvarint(buf, uint64(full))
		at += gap + full
		told += full
	}
	return buf, told
}

// bits has a bit for each offset from base on, and how many done ones it tells of.
func (s *Set) bits(limit int) (buf []byte, told int64) {
	for at := s.Base; told < s.Count && len(buf) < limit; at += 8 {
		w, shift := (at-s.first)>>6, uint(at&63)
		b := s.words[w] >> shift
		if shift > 56 && w+1 < int64(len(s.words)) {
			b |= s.words[w+1] << (64 - shift)
		}
		buf = append(buf, byte(b))
		told += int64(bits.OnesCount8(byte(b)))
	}
	return buf, told
}

// run is how many offsets from at on are done, or not.
func (s *Set) run(at, end int64, done bool) int64 {
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

// Decode adds what encode wrote for the same base. Text of others is ignored.
func (s *Set) Decode(text string) {
	if len(text) < len(runPrefix) {
		return
	}
	buf, err := base64.RawStdEncoding.DecodeString(text[len(runPrefix):])
	if err != nil {
		return
	}
	switch text[:len(runPrefix)] {
	case runPrefix:
		s.decodeRuns(buf)
	case bitPrefix:
		base := s.Base
		for i := range len(buf) * 8 {
			if buf[i/8]>>(i%8)&1 == 1 {
				s.Set(base + int64(i))
			}
		}
	}
}

// maxDone bounds what is read of runs that others may have written.
const maxDone = 1 << 24

func (s *Set) decodeRuns(buf []byte) {
	at, end := s.Base, s.Base+maxDone
	for done := false; len(buf) > 0; done = !done {
		n, size := binary.Uvarint(buf)
		if size <= 0 || n > uint64(end-at) {
			return
		}
		buf = buf[size:]
		for i := int64(0); done && i < int64(n); i++ {
			s.Set(at + i)
		}
		at += int64(n)
	}
}

// A log may lose its end, when all its brokers lose their power at once for instance, and goes on with other records at
// the same offsets. Whoever remembers offsets would take these for done. So the leader epoch of the last record that
// was read is kept with what is done, and committed with it. A new owner asks where that epoch ended; one that stays
// sees a record of a later epoch at an offset that it has read. Both go back to where the log was cut.

// Read notes the leader epoch of a record that is next.
func (s *Set) Read(r *kgo.Record) { s.Seen = r.LeaderEpoch }

// Overlaid reports whether a record lies where another one was read before.
func (s *Set) Overlaid(r *kgo.Record) bool {
	return r.Offset < s.Next && s.Seen >= 0 && r.LeaderEpoch > s.Seen
}

// Known is the offset behind the last one that the set says anything about.
func (s *Set) Known() int64 {
	end := max(s.Base, s.Next)
	for off := s.first + int64(len(s.words))<<6 - 1; off >= end; off-- {
		if s.Has(off) {
			return off + 1
		}
	}
	return end
}

// Cut forgets what was known from an offset on. All before it that is not done is read again.
func (s *Set) Cut(at int64) {
	done := NewSet(min(s.Base, at))
	for off := s.Base; off < at; off++ {
		if s.Has(off) {
			done.Set(off)
		}
	}
	s.Base, s.Next, s.first, s.words, s.Count = done.Base, done.Base, done.first, done.words, done.Count
	s.Replay = min(s.Replay, at)
	maps.DeleteFunc(s.Before, func(p Location, _ byte) bool { return !p.Retry && p.Offset >= at })
}
