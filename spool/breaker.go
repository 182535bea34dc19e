package spool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// breaker keeps a broker that is away from being tried more often than once in a while. It opens with the first
// failure, and closes with the first answer.
type breaker struct {
	every time.Duration
	open  atomic.Bool // written under mu

	mu      sync.Mutex
	since   time.Time // when it opened
	next    time.Time // when somebody may try
	last    error
	closing chan struct{} // closed when it closes
}

func newBreaker(every time.Duration) *breaker { return &breaker{every: every} }

func (b *breaker) closed() bool { return !b.open.Load() }

// cause is why it is open, or nil.
func (b *breaker) cause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return nil
	}
	return b.last
}

// away returns since when it is open; zero when it is closed.
func (b *breaker) away() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return time.Time{}
	}
	return b.since
}

// fail notes that a try failed, and reports whether that opened the breaker.
func (b *breaker) fail(err error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.last, b.next = err, now.Add(b.every)
	if b.open.Load() {
		return false
	}
	b.since, b.closing = now, make(chan struct{})
	b.open.Store(true)
	return true
}

// succeed notes that the broker answered, and returns how long it was away if that closed the breaker.
func (b *breaker) succeed() (after time.Duration, closed bool) {
	if b.closed() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open.Load() {
		return 0, false
	}
	b.open.Store(false)
	close(b.closing)
	return time.Since(b.since), true
}

// turn reports whether the caller may try while the breaker is open. Nobody else may for a while then.
func (b *breaker) turn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Before(b.next) {
		return false
	}
	b.next = now.Add(b.every)
	return true
}

// pass waits until the breaker is closed, or it is the caller's turn to try, as a probe. Not ok: ctx has ended.
func (b *breaker) pass(ctx context.Context) (probe, ok bool) {
	for ctx.Err() == nil {
		if b.closed() {
			return false, true
		}
		if b.turn() {
			return true, true
		}
		b.mu.Lock()
		wait, closing := time.Until(b.next), b.closing
		b.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-closing:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false, false
}
