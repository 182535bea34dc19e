package guard

import (
	"math/rand/v2"
	"sync"
	"time"
)

// pacer gives messages that must wait for the same thing times to come back that are spread over the time it takes to
// serve them all: thousands that come back when the window opens, for five of them to pass, would be a busy loop.
type pacer struct {
	mu   sync.Mutex
	next map[string]time.Time // when the last of those that wait has had its turn
}

const pacerBound = 10_000

// wait returns when a message that may pass after so long at the earliest should come back. Step is how long it takes
// to serve one. One that came back before keeps its place.
func (p *pacer) wait(key string, after, step time.Duration, again bool) time.Duration {
	now := time.Now()
	opens := now.Add(after)
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.next[key]
	switch {
	case again && last.After(opens):
		return after + rand.N(last.Sub(opens))
	case again:
		return after
	case last.Before(opens):
		last = opens
	}
	if !known && !p.room(now) {
		return after + rand.N(step+1)
	}
	p.next[key] = last.Add(step)
	return last.Sub(now)
}

// room makes room for a new key, if it can. p.mu is held.
func (p *pacer) room(now time.Time) bool {
	if p.next == nil {
		p.next = make(map[string]time.Time)
	}
	if len(p.next) >= pacerBound {
		for key, last := range p.next {
			if last.Before(now) {
				delete(p.next, key)
			}
		}
	}
	return len(p.next) < pacerBound
}

// atMost bounds a park, spread a little so that those that are cut do not all come back at once.
func atMost(wait, longest time.Duration) time.Duration {
	if wait <= longest {
		return wait
	}
	return longest - rand.N(longest/8+1)
}
