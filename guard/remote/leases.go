package remote

import (
	"context"
	"sync"
	"time"
)

// lease names what a client holds.
type lease struct {
	what, name, key string
	token           uint64
}

// leases end what clients hold and do not renew, where the store does not do so itself.
type leases struct {
	mu     *sync.Mutex
	timers map[lease]*ending
}

// ending is how a lease ends.
type ending struct {
	timer *time.Timer
	end   func(ctx context.Context)
}

func newLeases() leases { return leases{mu: new(sync.Mutex), timers: map[lease]*ending{}} }

// leastLease bounds how soon a lease ends, whatever a client asks for.
const leastLease = time.Second

// keep ends something after a time, unless it is dropped before.
func (l leases) keep(name lease, after time.Duration, end func(ctx context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &ending{end: end}
	e.timer = time.AfterFunc(max(after, leastLease), func() { l.expire(name, e) })
	l.timers[name] = e
}

// expire ends what was not dropped. The lock is held meanwhile: who drops it is before the end, or after it.
func (l leases) expire(name lease, e *ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timers[name] == e {
		delete(l.timers, name)
		e.end(context.Background())
	}
}

func (l leases) drop(name lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.timers[name]; e != nil {
		e.timer.Stop()
		delete(l.timers, name)
	}
}

// close ends all at once.
func (l leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, e := range l.timers {
		e.timer.Stop()
		delete(l.timers, name)
		e.end(context.Background())
	}
}
