package cluster

import (
	"sync/atomic"
	"time"
)

// LockMetrics counts what becomes of locks. The zero value is ready; it is safe for concurrent use.
type LockMetrics struct {
	got, refused, lost, given atomic.Uint64
	held, longest             atomic.Int64
}

// LockStats are the counts of a LockMetrics.
type LockStats struct {
	// Acquired counts locks that were taken, Failed tries that ended without one, Expired locks that were lost, Released
	// those given up.
	Acquired, Failed, Expired, Released uint64
	// Held is how long released locks were held in all, and Longest how long one of them.
	Held, Longest time.Duration
}

// Stats returns the counts so far.
func (m *LockMetrics) Stats() LockStats {
	return LockStats{Acquired: m.got.Load(), Failed: m.refused.Load(), Expired: m.lost.Load(), Released: m.given.Load(),
		Held: time.Duration(m.held.Load()), Longest: time.Duration(m.longest.Load())}
}

func (m *LockMetrics) acquired() {
	if m != nil {
		m.got.Add(1)
	}
}

func (m *LockMetrics) failed() {
	if m != nil {
		m.refused.Add(1)
	}
}

func (m *LockMetrics) expired() {
	if m != nil {
		m.lost.Add(1)
	}
}

func (m *LockMetrics) released(held time.Duration) {
	if m == nil {
		return
	}
	m.given.Add(1)
	m.held.Add(int64(held))
	for most := m.longest.Load(); int64(held) > most &&
		!m.longest.CompareAndSwap(most, int64(held)); most = m.longest.Load() {
	}
}
