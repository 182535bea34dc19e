// Package stall measures how long the machine did not let a process run, so that a test that decides by time can excuse
// exactly that much. It asks nobody: a goroutine sleeps, and what it sleeps longer than it wanted is the machine's.
package stall

import (
	"sync"
	"testing"
	"time"
)

const (
	nap   = 5 * time.Millisecond
	grain = time.Millisecond // timers are no more exact than this on an idle machine
)

// Meter adds up the stalls of the machine while it runs.
type Meter struct {
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	wake   time.Time // when the nap under way is to end
	stalls []stall   // in the order of their ends
}

// stall is a time in which nothing ran that should have.
type stall struct{ from, to time.Time }

// Start begins to measure. The caller stops it.
func Start() *Meter {
	m := &Meter{stop: make(chan struct{}), done: make(chan struct{}), wake: time.Now().Add(nap)}
	go m.measure()
	return m
}

// Stop ends the measuring. What was measured stays.
func (m *Meter) Stop() {
	close(m.stop)
	<-m.done
}

func (m *Meter) measure() {
	defer close(m.done)
	timer := time.NewTimer(nap)
	defer timer.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-timer.C:
		}
		m.woke(time.Now())
		timer.Reset(nap)
	}
}

// woke notes that a nap ended, and begins the next one.
func (m *Meter) woke(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.wake) > grain {
		m.stalls = append(m.stalls, stall{m.wake, now})
	}
	m.wake = now.Add(nap)
}

// Since returns for how long the machine has stalled since then, in all.
func (m *Meter) Since(then time.Time) time.Duration { return m.between(then, time.Now()) }

// Elapsed returns the time since then without the stalls: what a test that decides by time judges by.
func (m *Meter) Elapsed(then time.Time) time.Duration {
	now := time.Now()
	return now.Sub(then) - m.between(then, now)
}

// Watch measures until the test ends.
func Watch(t testing.TB) *Meter {
	m := Start()
	t.Cleanup(m.Stop)
	return m
}

func (m *Meter) between(from, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	total := stall{m.wake, now}.after(from) // the nap under way may be too long already
	for i := len(m.stalls) - 1; i >= 0 && m.stalls[i].to.After(from); i-- {
		total += m.stalls[i].after(from)
	}
	return total
}

// after is how much of a stall came after then.
func (s stall) after(then time.Time) time.Duration {
	if then.After(s.from) {
		s.from = then
	}
	return max(0, s.to.Sub(s.from))
}
