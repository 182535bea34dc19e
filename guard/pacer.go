package guard

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// pacer gives messages that must wait for the same thing times to come back that are spread over the time it takes to
// serve them all: thousands that come back when the window opens, for five of them to pass, would be a busy loop.
type pacer struct {
	used  atomic.Bool // something waited once: where nothing ever does, nobody asks
	mu    sync.Mutex
	lines map[id]line
}

// line is of messages that wait for the same thing.
type line struct {
	last time.Time // the turn of the last that waits
	step time.Duration
}

// end is when the last has had its turn.
func (l line) end() time.Time { return l.last.Add(l.step) }

const pacerBound = 10_000

// wait returns when a message that may pass after so long at the earliest should come back. Step is how long it takes
// to serve one. One that came back before keeps its place.
func (p *pacer) wait(key id, after, step time.Duration, again bool) time.Duration {
	now := time.Now()
	opens := now.Add(after)
	p.mu.Lock()
	defer p.mu.Unlock()
	l, known := p.lines[key]
	switch rest := l.end().Sub(opens); {
	case again && rest > step: // others wait, too
		return after + rand.N(rest)
	case again:
		return after
	}
	if !known && !p.room(now) {
		return after + rand.N(step+1)
	}
	turn := l.end()
	if turn.Before(opens) {
		turn = opens
	}
	p.lines[key] = line{last: turn, step: step}
	p.used.Store(true)
	return turn.Sub(now)
}

// waited reports whether a message that was published then had to wait for others of its line.
func (p *pacer) waited(key id, published time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return published.Before(p.lines[key].last)
}

// empty reports whether all of a line have had their turns.
func (p *pacer) empty(key id) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[key].end().Before(time.Now())
}

// room makes room for a new key, if it can. p.mu is held.
func (p *pacer) room(now time.Time) bool {
	if p.lines == nil {
		p.lines = make(map[id]line)
	}
	if len(p.lines) >= pacerBound {
		for key, l := range p.lines {
			if l.end().Before(now) {
				delete(p.lines, key)
			}
		}
	}
	return len(p.lines) < pacerBound
}

// maxPhase is how much longer than needed the first of a line waits at most.
const maxPhase = 2 * time.Second

// phase is how long after its window opens the first of a line comes back. It differs between keys, so that those whose
// windows open at the same moment, as after a restart, are no herd; and it is the same in every process.
func phase(key id, step time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(key.limit + ":" + key.key)) // simpler hashes have like values for like keys
	share := float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
	return time.Duration(share * float64(min(step, maxPhase)))
}

// atMost bounds a park, spread a little so that those that are cut do not all come back at once.
func atMost(wait, longest time.Duration) time.Duration {
	if wait <= longest {
		return wait
	}
	return longest - rand.N(longest/8+1)
}
