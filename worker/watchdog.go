package worker

import (
	"math"
	"time"

	"github.com/ferrymq/ferry"
)

// watchdog acts on what is out of time: handlers that run too long, leases that could not be renewed, batches that do
// not fill, and messages that wait in vain for a slot. Nothing sets a timer of its own: deadlines only bring the next
// look forward. Guarded by engine.mu.
type watchdog struct {
	next    time.Duration // the next look; never: math.MaxInt64
	looking bool          // it looks right now, and needs no kick
	kick    chan struct{}
}

const never = time.Duration(math.MaxInt64)

// watchUntil has the watchdog look no later than t.
func (e *engine) watchUntil(t time.Duration) {
	if t >= e.watch.next {
		return
	}
	e.watch.next = t
	if e.watch.looking {
		return
	}
	select {
	case e.watch.kick <- struct{}{}:
	default:
	}
}

// watchdog looks whenever something may be out of time, until the engine closes.
func (e *engine) watchdog() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		e.mu.Lock()
		if e.closing {
			e.mu.Unlock()
			return
		}
		now := e.now()
		lost := e.look(now)
		next := e.watch.next
		e.mu.Unlock()
		e.announceLost(lost)
		next = min(next, e.logLeftOut(now))
		if next == never {
			timer.Stop()
		} else {
			timer.Reset(next - now)
		}
		select {
		case <-timer.C:
		case <-e.watch.kick:
		}
	}
}

// look acts on everything that is out of time, and reckons when to look again. It returns runs whose lease was lost.
func (e *engine) look(now time.Duration) (lost []*run) {
	e.watch.next, e.watch.looking = never, true
	for _, s := range e.pool.slots {
		if r := s.cur; r != nil && !r.abandoned && r.state == running {
			lost = e.lookAtRun(r, now, lost)
			e.watchUntil(r.limit())
		}
	}
	for _, c := range e.consumers {
		c.lookAtWaiting(now)
	}
	e.lookAtSuspects(now)
	e.makeRoom()
	e.watch.looking = false
	e.wakeSlot()
	return lost
}

func (e *engine) lookAtRun(r *run, now time.Duration, lost []*run) []*run {
	r.each(func(m *run) {
		if m.leaseUntil-r.c.margin <= now && r.c.lose(r, m, false, now) {
			lost = append(lost, m)
		}
	})
	if r.timeoutAt == 0 || r.timeoutAt > now {
		return lost
	}
	if !r.overtime { // its context has ended by itself
		r.overtime = true
		r.timeoutAt = now + timeoutGrace
		return lost
	}
	r.timeoutAt = 0
	r.c.abandon(r, now, r.c.overdue)
	return lost
}

// limit is when the watchdog has to look at a running r next.
func (r *run) limit() time.Duration {
	t := never
	if r.timeoutAt != 0 {
		t = r.timeoutAt
	}
	if r.batch == nil {
		if !r.lost {
			t = min(t, r.leaseUntil-r.c.margin)
		}
		return t
	}
	for _, m := range *r.batch {
		if !m.lost {
			t = min(t, m.leaseUntil-r.c.margin)
		}
	}
	return t
}

// lookAtWaiting starts a batch whose time has come, and gives back what waits in vain.
func (c *consumer) lookAtWaiting(now time.Duration) {
	head := c.lanes.ready.head
	if head == nil {
		return
	}
	if c.batch != nil && c.inUse < c.limit {
		if due := head.arrived + c.batchWait; due > now {
			c.e.watchUntil(due)
		}
		c.e.offer(c)
	}
	if waited := now - head.arrived; waited >= c.patience() {
		c.pace.stalled(waited, min(c.limit, c.e.pool.limit), len(c.e.consumers))
		c.giveBackReady()
		c.settleSoon()
		return
	}
	c.e.watchUntil(head.arrived + c.patience())
}

// announceLost tells the LeaseLost hook and the log.
func (e *engine) announceLost(lost []*run) {
	for _, r := range lost {
		e.logLine(e.base, logLost, r.c, r.d, "attempt", r.d.Attempt)
		if e.hooks.LeaseLost == nil {
			continue
		}
		ev := r.event()
		ev.Err = ferry.ErrLeaseLost
		e.hooks.LeaseLost(r, ev)
	}
}
