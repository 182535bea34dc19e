package stall

import "time"

const (
	rest  = 500 * time.Millisecond // between two bursts of work
	burst = 10 * time.Millisecond  // of work: more than one turn on a processor that others want too
	steps = 100_000                // of a piece of work: less than one turn
	noise = 0.25                   // a processor that nobody else wants is no more even than this
)

// crowd is a time in which others had a share of the processor that a process would have had on an idle machine.
type crowd struct {
	from, to time.Time
	share    float64
}

// worker finds out how crowded the machine is by working. It compares with the fastest piece of work that it ever did,
// which nobody interrupted.
type worker struct {
	best time.Duration // of a piece
	sink uint64        // keeps the compiler from leaving the work out
}

// burst works for a few milliseconds, and returns which share of the time that took others had.
func (w *worker) burst() float64 {
	begun := time.Now()
	for last, pieces := begun, time.Duration(1); ; pieces++ {
		for i := range uint64(steps) {
			w.sink = w.sink*31 + i
		}
		now := time.Now()
		took := now.Sub(last)
		if last = now; took <= 0 { // time is virtual
			return 0
		}
		if w.best == 0 || took < w.best {
			w.best = took
		}
		if alone := pieces * w.best; alone >= burst {
			return taken(alone, now.Sub(begun))
		}
	}
}

// taken is the share that others had, where somebody alone would have been ready sooner.
func taken(alone, took time.Duration) float64 {
	share := 1 - float64(alone)/float64(took)
	if share < noise {
		return 0
	}
	return share
}

// within is how much of the time between two moments others had.
func within(crowds []crowd, from, now time.Time) (total time.Duration) {
	for i := len(crowds) - 1; i >= 0; i-- {
		c := crowds[i]
		if i == len(crowds)-1 {
			c.to = now // nothing else is known yet of what came since
		}
		if !c.to.After(from) {
			break
		}
		if c.from.Before(from) {
			c.from = from
		}
		total += time.Duration(c.share * float64(max(0, c.to.Sub(c.from))))
	}
	return total
}
