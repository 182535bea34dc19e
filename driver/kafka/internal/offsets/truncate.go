package offsets

import (
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A log may lose its end, when all its brokers are killed at once for instance, and goes on with other records at the
// same offsets. Whoever remembers offsets would take these for done. So the leader epoch of the last record that was
// read is kept with what is done, and committed with it. A new owner asks where that epoch ended; one that stays sees a
// record of a later epoch at an offset that it has read. Both go back to where the log was cut.

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
