// Package stall measures how long the machine did not let a process run, so that a test that decides by time can excuse
// exactly that much. It asks nobody: a goroutine sleeps, and what it sleeps longer than it wanted is the machine's.
// Another works now and then, and what that takes longer than it should others had of the processor, which the servers
// of a test want, too. The longer of both counts.
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
	done sync.WaitGroup

	mu     sync.Mutex
	wake   time.Time // when the nap under way is to end
	stalls []stall   // in the order of their ends
	crowds []crowd   // one after the other
}

// stall is a time in which nothing ran that should have.
type stall struct{ from, to time.Time }

// Start begins to measure. The caller stops it.
func Start() *Meter {
	now := time.Now()
	m := &Meter{stop: make(chan struct{}), wake: now.Add(nap)}
	m.done.Go(func() { m.every(nap, m.woke) })
	var w worker
	last := now
	work := func(time.Time) {
		share, now := w.burst(), time.Now()
		m.worked(crowd{last, now, share})
		last = now
	}
	work(now)
	m.done.Go(func() { m.every(rest, work) })
	return m
}

// Stop ends the measuring. What was measured stays.
func (m *Meter) Stop() {
	close(m.stop)
	m.done.Wait()
}

// every does something after each pause, until the end.
func (m *Meter) every(pause time.Duration, do func(now time.Time)) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-timer.C:
		}
		do(time.Now())
		timer.Reset(pause)
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

// worked notes how crowded the machine was.
func (m *Meter) worked(c crowd) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crowds = append(m.crowds, c)
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
	return max(total, within(m.crowds, from, now))
}

// after is how much of a stall came after then.
func (s stall) after(then time.Time) time.Duration {
	if then.After(s.from) {
		s.from = then
	}
	return max(0, s.to.Sub(s.from))
}
