package worker

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// A message that keeps losing its lease while its handler runs may be what kills the process. What runs beside it then
// is lost with it, and must not die of that. So of those suspects no two start within a short time: most handlers have
// ended by then, and most killers have killed. And on its last chance a message runs with no other suspect beside it,
// for as long as it takes: whatever dies of its deliveries had its process for itself when it lost the last one.
//
// A suspect costs its slot and holds up its key. Everything else goes on.
const (
	suspectDeliveries = 3               // makes a message a suspect: it was begun, and its holder never spoke again
	suspectSpacing    = 2 * time.Second // from the start of one suspect to that of the next, unless the first ends before
	suspectPatience   = 5 * time.Second // how long a suspect is held for its turn
	suspectAway       = 2 * time.Second // and how long it is parked after that, so that others may have it
	maxSuspects       = 32              // held for their turn at once; the rest is parked
)

// suspects are those of all consumers. Guarded by engine.mu.
type suspects struct {
	waiting []*run // for their turn, in order of arrival: in no list of their consumer, but still the first of their key
	running []*run // begun, and the broker has not answered what became of them: until then they are lost with the process
}

// suspect reports whether d may have killed its process.
func suspect(d *driver.Delivery) bool { return d.Deliveries >= suspectDeliveries }

// lastChance reports whether one more loss makes a dead letter of d.
func (e *engine) lastChance(d *driver.Delivery) bool { return d.Deliveries >= e.options.MaxDeliveries }

// setAside has r, a suspect that was ready, wait for its turn.
func (e *engine) setAside(r *run, now time.Duration) {
	if len(e.suspects.waiting) >= maxSuspects {
		e.park(r, now)
		return
	}
	e.suspects.waiting = append(e.suspects.waiting, r)
	e.watchSuspects(now)
}

// park gives back a suspect for which there is no turn soon.
func (e *engine) park(r *run, now time.Duration) {
	r.c.conclude(r, &settlement{Delivery: r.d, Outcome: driver.Release, After: suspectAway, Unseen: true}, now)
	r.c.settleSoon()
	e.offer(r.c)
}

// nextSuspect takes the next suspect that may start, if there is one.
func (e *engine) nextSuspect(now time.Duration) *run {
	s := &e.suspects
	for i := e.suspectInTurn(now); i >= 0; i = e.suspectInTurn(now) {
		r := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		if !r.c.fit(r, now) {
			e.offer(r.c)
			continue
		}
		r.started = now
		r.suspected = true
		s.running = append(s.running, r)
		if r.c.batch != nil {
			return r.c.lead([]*run{r}, now)
		}
		return r
	}
	return nil
}

// suspectInTurn is the index of the waiting suspect that may start now, or -1. One on its last chance holds up those
// behind it, so that it gets its turn; one whose handler is busy elsewhere does not.
func (e *engine) suspectInTurn(now time.Duration) int {
	for i, r := range e.suspects.waiting {
		if r.c.inUse >= r.c.limit {
			continue
		}
		if e.mayStartSuspect(r, now) {
			return i
		}
		break
	}
	return -1
}

// suspectDue reports whether a slot could start a suspect.
func (e *engine) suspectDue() bool {
	return len(e.suspects.waiting) > 0 && e.suspectInTurn(e.now()) >= 0
}

func (e *engine) mayStartSuspect(r *run, now time.Duration) bool {
	for _, other := range e.suspects.running {
		if e.lastChance(r.d) || e.lastChance(other.d) || other.state == starting || other.started+suspectSpacing > now {
			return false
		}
	}
	return true
}

// suspectEnded lets others have their turn: the outcome of r is stored, or is known never to be.
func (e *engine) suspectEnded(r *run) {
	r.suspected = false
	e.suspects.running = slices.DeleteFunc(e.suspects.running, func(o *run) bool { return o == r })
}

// watchSuspects has the watchdog look when a turn may come, and when the patience of the first is over.
func (e *engine) watchSuspects(now time.Duration) {
	s := &e.suspects
	if len(s.waiting) == 0 {
		return
	}
	e.watchUntil(s.waiting[0].arrived + suspectPatience)
	for _, r := range s.running {
		if turn := r.started + suspectSpacing; turn > now {
			e.watchUntil(turn)
		}
	}
}

// lookAtSuspects parks those that have waited for too long.
func (e *engine) lookAtSuspects(now time.Duration) {
	s := &e.suspects
	for len(s.waiting) > 0 && s.waiting[0].arrived+suspectPatience <= now {
		r := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		if r.c.fit(r, now) {
			e.park(r, now)
		}
	}
	e.watchSuspects(now)
}

// takeWaitingSuspects removes and returns the waiting suspects of c that are wanted.
func (c *consumer) takeWaitingSuspects(wanted func(r *run) bool) (taken []*run) {
	s := &c.e.suspects
	s.waiting = slices.DeleteFunc(s.waiting, func(r *run) bool {
		if r.c != c || !wanted(r) {
			return false
		}
		taken = append(taken, r)
		return true
	})
	return taken
}

// suspectsWaiting counts the waiting suspects of c.
func (c *consumer) suspectsWaiting() (n int) {
	for _, r := range c.e.suspects.waiting {
		if r.c == c {
			n++
		}
	}
	return n
}
