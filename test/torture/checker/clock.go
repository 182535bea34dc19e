package checker

import (
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// arriving is how long a claim is under way at most, where the broker's clock is set. It is set much further.
const arriving = int64(2 * time.Second)

// clockOffset is what to add to a time of the broker's to get one of ours: at most, because every claim took some time
// to arrive. While its clock was set is left out.
func (l *ledger) clockOffset() int64 {
	least := int64(forever)
	for _, c := range l.courses {
		for _, h := range c.leases {
			if !l.stepped(h.At-arriving, h.At) {
				least = min(least, h.At-h.ClaimedAt)
			}
		}
	}
	return least
}

// setBy is how far the broker's clock was set when it made a lease: what brings that nearest to its arrival.
func (l *ledger) setBy(h *lease) int64 {
	away := func(step int64) int64 { return max(h.At-(h.ClaimedAt+l.offset-step), h.ClaimedAt+l.offset-step-h.At) }
	var set int64
	for _, s := range l.faults {
		if s.step != 0 && s.overlaps(h.At-arriving, h.At) && away(s.step) < away(set) {
			set = s.step
		}
	}
	return set
}

// stepped says that the broker's clock was set meanwhile. Whatever counts by it comes sooner or later then.
func (l *ledger) stepped(from, to int64) bool { return l.during(history.StepClock, from, to) }
