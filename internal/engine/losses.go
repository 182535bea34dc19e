package engine

import (
	"math"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// A lost lease counts as a delivery, because its holder may have died of the message. The first one of a message counts
// always. A later one counts if the handler had begun, and is taken back when its holder is heard of again: it lives.
//
// What is needed for that is kept beside items and claims, because few have it. It is not stored: after the process
// ended there is nobody who could be heard of.

// mostLosses is how many holders of a message are listened to, the latest.
const mostLosses = 16

// loseLease counts a delivery whose holder is gone.
func (it *item) loseLease(begun bool) {
	if !it.is(leaseLost) || begun {
		it.lost = min(it.lost, math.MaxUint16-1) + 1
	}
	it.set(leaseLost, true)
	it.cause = driver.CauseLeaseExpired
}

// lose counts the loss of a claim that has ended, and listens to its holder.
func (s *subscription) lose(c *claim, it *item) {
	it.loseLease(c.begun)
	s.g.stats.Redelivered++
	if !c.begun {
		return
	}
	r := it.record()
	if r.losses = append(r.losses, c); len(r.losses) > mostLosses {
		delete(r.losses[0].s.losses, r.losses[0])
		r.losses = slices.Delete(r.losses, 0, 1)
	}
	if s.losses == nil {
		s.losses = make(map[*claim]*item)
	}
	s.losses[c] = it
}

// heardOf takes the count of a lost claim back, once: its holder lives.
func (s *subscription) heardOf(c *claim) {
	it := s.losses[c]
	if it == nil {
		return
	}
	delete(s.losses, c)
	it.more.losses = slices.DeleteFunc(it.more.losses, func(x *claim) bool { return x == c })
	it.lost--
	s.t.touch(it.e)
}

// forgetLosses stops listening to those who lost an item: it has ended for the group, or starts over.
func (it *item) forgetLosses() {
	if it.more == nil {
		return
	}
	for _, c := range it.more.losses {
		delete(c.s.losses, c)
	}
	it.more.losses = nil
}
