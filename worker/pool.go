package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// pool is the slots, shared by all consumers. A slot is a goroutine that takes the next message that may start, runs
// its handler, and comes back with the outcome: no message is handed from one goroutine to another. Guarded by
// engine.mu.
type pool struct {
	limit  int
	slots  []*slot // started as needed
	idle   int
	waking bool // one slot is on its way, and will wake the next if there is more to do
	wake   sync.Cond

	first, last *consumer // that have something to start, served in turn
}

// slot is one goroutine that runs handlers.
type slot struct {
	cur *run
}

// offer puts c into the queue of consumers if something of it can start.
func (e *engine) offer(c *consumer) {
	if c.runnable || !c.canStart() {
		return
	}
	c.runnable = true
	p := &e.pool
	if p.last == nil {
		p.first = c
	} else {
		p.last.after = c
	}
	p.last = c
}

func (p *pool) nextConsumer() *consumer {
	c := p.first
	if c != nil {
		p.first, c.after, c.runnable = c.after, nil, false
		if p.first == nil {
			p.last = nil
		}
	}
	return c
}

// wakeSlot gets one more slot to look for work, if there is any. The slot wakes the next: so many run as there is work
// for, and no more are woken than the processors can run.
func (e *engine) wakeSlot() {
	p := &e.pool
	if p.waking || e.draining || p.first == nil && !e.suspectDue() {
		return
	}
	switch {
	case p.idle > 0:
		p.waking = true
		p.wake.Signal()
	case len(p.slots) < p.limit:
		p.waking = true
		e.startSlot()
	}
}

func (e *engine) startSlot() {
	s := new(slot)
	e.pool.slots = append(e.pool.slots, s)
	go e.work(s)
}

// work is the life of a slot.
func (e *engine) work(s *slot) {
	defer e.endSlot(s)
	e.mu.Lock()
	e.pool.waking = false
	now := e.now()
	for {
		if len(e.pool.slots) > e.pool.limit { // scaled down
			e.removeSlot(s)
			e.wakeSlot()
			e.mu.Unlock()
			return
		}
		r := e.next(now)
		if r == nil {
			if e.draining {
				e.removeSlot(s)
				e.mu.Unlock()
				return
			}
			e.pool.idle++
			e.pool.wake.Wait()
			e.pool.idle--
			e.pool.waking = false
			now = e.now()
			continue
		}
		s.cur = r
		e.wakeSlot()
		if r.recorded() {
			asked := now
			ok := r.c.record(r)
			now = e.now()
			r.recording = now - asked
			if !ok {
				s.cur = nil
				e.vacate(r)
				continue
			}
		}
		e.start(r, now)
		e.mu.Unlock()
		v := e.execute(r)
		e.mu.Lock()
		s.cur = nil
		e.finish(r, &v)
		now = v.now
	}
}

// endSlot replaces a slot whose handler ended its goroutine. That is a failed attempt like a panic.
func (e *engine) endSlot(s *slot) {
	if s.cur == nil {
		return
	}
	r := s.cur
	v := e.judgeExit(r)
	e.mu.Lock()
	s.cur = nil
	e.finish(r, &v)
	e.removeSlot(s)
	e.wakeSlot()
	e.mu.Unlock()
}

func (e *engine) judgeExit(r *run) verdict {
	err := &crash{}
	if r.batch == nil {
		return e.judge(r, err)
	}
	return e.judgeBatch(r, spreadErrors(err, len(*r.batch)))
}

func (e *engine) removeSlot(s *slot) {
	e.pool.slots = slices.DeleteFunc(e.pool.slots, func(o *slot) bool { return o == s })
	e.moved()
}

// next takes the next run that may start. It occupies a slot from now on.
func (e *engine) next(now time.Duration) *run {
	if e.draining {
		return nil
	}
	for {
		if r := e.nextSuspect(now); r != nil {
			e.occupy(r)
			r.c.makeRoom()
			return r
		}
		c := e.pool.nextConsumer()
		if c == nil {
			return nil
		}
		r := c.take(now)
		e.offer(c)
		if r != nil {
			e.occupy(r)
		}
		c.makeRoom()
		if r != nil {
			return r
		}
	}
}

func (e *engine) occupy(r *run) {
	r.c.inUse++
	e.active++
}

// vacate gives back the slot of r.
func (e *engine) vacate(r *run) {
	c := r.c
	c.inUse--
	if r.abandoned {
		e.zombies--
		c.count.zombies--
	} else {
		e.active--
	}
	c.settleSoon()
	e.offer(c)
	c.makeRoom()
	e.moved()
}

// start counts r as running and sets its deadlines.
func (e *engine) start(r *run, now time.Duration) {
	c := r.c
	r.started, r.state = now, running
	if r.batch != nil {
		for _, m := range *r.batch {
			m.started, m.state = now, running
		}
	}
	if c.timeout > 0 {
		r.timeoutAt = now + c.timeout
	}
	e.watchUntil(r.limit())
	e.watchSuspects(now)
}

// finish takes in what came of a run.
func (e *engine) finish(r *run, v *verdict) {
	c := r.c
	switch {
	case r.abandoned:
		c.finishZombie(r)
	case r.batch == nil:
		c.finished(r, 1, v.now)
		c.conclude(r, &v.one, v.now)
	default:
		c.finished(r, len(*r.batch), v.now)
		c.concludeBatch(*r.batch, v.each, v.now)
	}
	e.vacate(r)
}

// finished learns from a run of n messages.
func (c *consumer) finished(r *run, n int, now time.Duration) {
	took := now - r.started
	c.pace.done(r.recording+took, n, min(c.limit, c.e.pool.limit), len(c.e.consumers))
	c.recent.done(now, took, n)
	c.e.worked += took
	if r.batch == nil { // as each does, without making a function for every message
		c.recent.waited(r.d, r.started-r.arrived, now)
		return
	}
	for _, m := range *r.batch {
		c.recent.waited(m.d, m.started-m.arrived, now)
	}
}

// finishZombie refuses the late result of a handler that was given up.
func (c *consumer) finishZombie(r *run) {
	c.count.late++
	r.each(func(m *run) {
		if m.lost {
			c.notify(m, driver.Release, errLost)
		}
	})
}
