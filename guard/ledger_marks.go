package guard

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// Marks of work in this process. Work under way ends with it, so it needs no lease; what was done is kept.
//
// There may be a million of them, so nothing here has a pointer: the garbage collector need not look at them.

// digest stands for the name of a layer and an id.
type digest = store.Digest

// marks of work in this process.
type marks struct {
	most  int
	of    map[digest]mark
	fades []fade // marks of what was done, by when that was
	token uint64
}

// parseDigest reads what its String wrote.
func parseDigest(s string) (d digest, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(d) {
		return d, false
	}
	return digest(b), true
}

// mark is the work of one id: done until a time of the ledger, or under way by a token.
type mark struct {
	token uint64 // zero: done
	until time.Duration
}

func (m mark) over(at time.Duration) bool { return m.token == 0 && at >= m.until }

// fade is when a mark may be forgotten.
type fade struct {
	of    digest
	until time.Duration
}

// fadeAtOnce is how many marks are forgotten together. Each is somewhere else in memory, and the processor waits for
// many at once no longer than for one.
const fadeAtOnce = 64

// fade forgets marks whose time is over, as soon as there are enough. Those of longer windows may hold up others for a
// while.
func (s *marks) fade(at time.Duration) {
	for len(s.fades) >= fadeAtOnce && allOver(s.fades[:fadeAtOnce], at) {
		for _, f := range s.fades[:fadeAtOnce] {
			if m, ok := s.of[f.of]; ok && m.over(at) {
				delete(s.of, f.of)
			}
		}
		s.fades = s.fades[fadeAtOnce:]
	}
}

// allOver begins with the last, which nearly always is the last to be over.
func allOver(fades []fade, at time.Duration) bool {
	for i := len(fades) - 1; i >= 0; i-- {
		if at < fades[i].until {
			return false
		}
	}
	return true
}

// forget makes room: what was done first is forgotten before its time. Refusing what is new would stop all work until
// the first window ends, which may be days.
func (s *marks) forget() bool {
	for len(s.fades) > 0 {
		first := s.fades[0]
		s.fades = s.fades[1:]
		if m, ok := s.of[first.of]; ok && m.over(first.until) {
			delete(s.of, first.of)
			return true
		}
	}
	return false
}

// begin asks for the time only where a mark is known: most work is new.
func (s *marks) begin(k digest, token uint64, at func() time.Duration) (store.Mark, error) {
	m, known := s.of[k]
	switch {
	case !known:
	case m.token == 0 && m.over(at()):
	case m.token == 0:
		return store.Mark{Done: true}, nil
	case m.token == token:
		return store.Mark{Ours: true, Token: token}, nil
	default:
		return store.Mark{}, nil
	}
	for !known && len(s.of) >= s.most {
		if !s.forget() {
			return store.Mark{}, driver.NewError(driver.ErrFull, fmt.Sprintf("work of %d ids is under way already", s.most),
				"raise MaxKeys", nil)
		}
	}
	s.token++
	s.of[k] = mark{token: s.token}
	return store.Mark{Ours: true, Token: s.token}, nil
}

// complete marks work as done until a time, and forgets what is over.
func (s *marks) complete(k digest, at, until time.Duration) {
	s.fade(at)
	s.of[k] = mark{until: until}
	s.fades = append(s.fades, fade{k, until})
}

// complete marks work as done, and has it kept.
func (l *ledger) complete(now time.Time, r *store.MarkRequest) {
	at, k := now.Sub(l.epoch), r.Digest()
	l.marks.complete(k, at, at+r.Window)
	if l.keep != nil {
		l.keep(entry{Mark: k.String(), Done: now.Add(r.Window)})
	}
}

func (s *marks) abort(k digest, token uint64) {
	if m, ok := s.of[k]; ok && m.token != 0 && m.token == token {
		delete(s.of, k)
	}
}
