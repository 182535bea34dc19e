package worker

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// suspectDeliveries makes a message a suspect: it lost two leases, and may be what killed its process. Its neighbours
// then lost theirs with it. So that they do not die of it, a suspect runs alone: what has not started is given back,
// what runs is finished and settled, nothing is fetched, and only then it starts. One that is innocent comes to its end,
// and a killer takes nobody with it.
const suspectDeliveries = 3

// suspicion makes r, which was about to start, the suspect.
func (e *engine) suspicion(r *run, now time.Duration) {
	e.suspect = r
	e.suspectUntil = now + e.options.StopTimeout
	e.watchUntil(e.suspectUntil)
	for _, c := range e.consumers {
		c.giveBackAll()
		c.settleSoon()
		if c.intake.cancel != nil {
			c.intake.cancel()
		}
	}
}

// suspectMayRun reports whether nothing else is in flight.
func (e *engine) suspectMayRun() bool {
	return e.suspect != nil && e.suspect.state == waiting && e.active == 0 && e.unsettled == 0 && e.fetches == 0
}

// nextSuspect starts the suspect if it may.
func (e *engine) nextSuspect(now time.Duration) *run {
	if !e.suspectMayRun() {
		return nil
	}
	r, c := e.suspect, e.suspect.c
	if c.leaseOver(r, now) {
		c.skip(r, now)
		e.cleared()
		return e.next(now)
	}
	if c.batch != nil {
		r = c.lead([]*run{r}, now)
	}
	e.begin(r, now)
	return r
}

// cleared resumes normal work after a suspect.
func (e *engine) cleared() {
	e.suspect = nil
	for _, c := range e.consumers {
		e.offer(c)
	}
	e.makeRoom()
	e.wakeSlot()
}

// lookAtSuspect parks a suspect that waits in vain for other handlers to end, so that one that hangs does not stop all.
func (e *engine) lookAtSuspect(now time.Duration) {
	r := e.suspect
	if r == nil || r.state != waiting {
		return
	}
	if now < e.suspectUntil {
		e.watchUntil(e.suspectUntil)
		return
	}
	s := settlement{Delivery: r.d, Outcome: driver.Release, After: 2 * e.options.StopTimeout}
	r.c.conclude(r, &s, now)
	r.c.settleSoon()
	e.cleared()
}
