package worker

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// The broker expires what waits there. What waits here, behind the head of its key or for a batch to fill, is given
// back when its turn comes and its TTL has ended meanwhile: the broker then discards or buries it, as its topic says.

// outlivedWait parks what is given back so. Where the clock of the broker has not reached the TTL yet the message comes
// again, and it must not go back and forth in a hot loop.
const outlivedWait = 10 * time.Millisecond

// ttlEnd is when the TTL of d ends, on the engine's clock, if it was received at now. The broker's times are compared
// with each other only. Never without a TTL, and for a message whose TTL had ended before its claim: it was replayed on
// purpose.
func ttlEnd(d *driver.Delivery, now time.Duration) time.Duration {
	if d.TTL == 0 {
		return never
	}
	left := d.PublishedAt.Add(d.TTL).Sub(d.ClaimedAt)
	if left <= 0 || left > never-now {
		return never
	}
	return now + left
}

// unseen gives back a message that no handler saw.
func unseen(r *run, now time.Duration) *settlement {
	s := &settlement{Delivery: r.d, Outcome: driver.Release, Unseen: true}
	if r.ttlUntil <= now {
		s.After = outlivedWait
	}
	return s
}

// outlived gives back a message whose TTL ended before its turn came.
func (c *consumer) outlived(r *run, now time.Duration) {
	c.conclude(r, unseen(r, now), now)
	c.settleSoon()
}
