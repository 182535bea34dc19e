package worker

import "time"

// pace reckons how much may be prefetched, from how long handlers take and how large messages are. Guarded by
// engine.mu.
type pace struct {
	taken    time.Duration // by one message, a moving average
	samples  int
	body     int // bytes, a moving average
	prefetch int // messages likely to start within prefetchTime
	shared   int // of those, if all handlers of the worker have as many to do
}

// done learns from one run of n messages in one of so many slots, which so many handlers share.
func (p *pace) done(took time.Duration, n, slots, handlers int) {
	took /= time.Duration(n)
	if p.samples == 0 {
		p.taken = took
	} else {
		p.taken += (took - p.taken) / 8
	}
	if p.samples++; p.samples&15 == 1 || p.prefetch == 0 {
		p.reckon(slots, handlers)
	}
}

// stalled learns that messages waited this long for a slot.
func (p *pace) stalled(waited time.Duration, slots, handlers int) {
	p.taken = max(p.taken, waited)
	p.reckon(slots, handlers)
}

func (p *pace) reckon(slots, handlers int) {
	n := time.Duration(slots) * prefetchTime / max(p.taken, time.Microsecond)
	p.prefetch = int(min(n, maxPrefetch))
	p.shared = p.prefetch / handlers
}

// sized learns from a fetch of n messages with so many bytes.
func (p *pace) sized(bytes, n int) {
	if n > 0 {
		p.body += (bytes/n - p.body) / 2
	}
}

// fits is how many messages of this size may be held unstarted.
func (p *pace) fits() int { return max(1, prefetchBytes/max(p.body, 1)) }
