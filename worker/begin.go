package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// begunDeliveries is from which delivery on the start of a handler is recorded. The first loss of a message counts
// without that, so that plain messages pay nothing.
const begunDeliveries = 2

// starts are runs that have a slot and wait until the broker has recorded that they begin. The slot that comes first
// asks for all that have come by then; those that come meanwhile go with the next call. Guarded by engine.mu.
type starts struct {
	wake  *sync.Cond
	busy  bool   // a call is under way, or the pause after one that failed
	asked []*run // not answered yet
	delay backoff
}

// recorded reports whether r is to begin only when the broker has recorded that.
func (r *run) recorded() bool {
	if r.batch == nil {
		return r.d.Deliveries >= begunDeliveries
	}
	for _, m := range *r.batch {
		if m.d.Deliveries >= begunDeliveries {
			return true
		}
	}
	return false
}

// record has the broker record that lead begins, and reports whether something of it is left to start. The rest is
// given back. engine.mu is held, and given up meanwhile.
func (c *consumer) record(lead *run) bool {
	s := &c.starts
	lead.state = starting
	lead.each(func(m *run) {
		m.state = starting
		if m.d.Deliveries >= begunDeliveries {
			m.asking = true
			s.asked = append(s.asked, m)
		}
	})
	for lead.asks() {
		if s.busy {
			s.wake.Wait()
		} else {
			c.callBegin()
		}
	}
	switch {
	case lead.abandoned:
		return false
	case lead.batch == nil:
		return c.keep(lead)
	}
	return c.keepMembers(lead)
}

func (r *run) asks() (yes bool) {
	r.each(func(m *run) { yes = yes || m.asking })
	return yes
}

// callBegin sends what was asked for so far. A call that failed is followed by a pause.
func (c *consumer) callBegin() {
	e, s := c.e, &c.starts
	runs := s.asked
	s.asked, s.busy = nil, true
	ds := make([]*driver.Delivery, len(runs))
	for i, r := range runs {
		ds[i] = r.d
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(e.working, c.lease/2)
	errs := c.conn.Begin(ctx, ds)
	cancel()
	c.failIfClosed(errs)
	e.mu.Lock()
	again := c.begun(runs, errs)
	s.wake.Broadcast()
	if again {
		e.mu.Unlock()
		s.delay.sleep(e.working)
		e.mu.Lock()
	} else {
		s.delay = 0
	}
	s.busy = false
	s.wake.Broadcast()
}

// begun takes in the answers, and reports whether some have to be asked for again.
func (c *consumer) begun(runs []*run, errs []error) (again bool) {
	now := c.e.now()
	for i, r := range runs {
		err := answer(errs, i)
		r.begun = r.begun || err == nil || errors.Is(err, ferry.ErrUnknown)
		r.lost = r.lost || errors.Is(err, ferry.ErrLeaseLost)
		if err == nil || !c.mayStart(r, now) {
			r.asking, r.recalled = false, r.recalled || err != nil
			continue
		}
		again = true
		c.starts.asked = append(c.starts.asked, r)
	}
	return again
}

// mayStart reports whether nothing has come between while r waited for its record.
func (c *consumer) mayStart(r *run, now time.Duration) bool {
	return !r.recalled && !r.cancelled.Load() && !c.e.draining && !c.quiet && !c.leaseOver(r, now) && r.ttlUntil > now
}

// keep reports whether r may start, and gives it back if not.
func (c *consumer) keep(r *run) bool {
	now := c.e.now()
	if c.mayStart(r, now) {
		return true
	}
	r.lost = c.leaseOver(r, now)
	back := unseen(r, now)
	if r.cancelled.Load() {
		back = dropped(r)
	}
	c.conclude(r, back, now)
	return false
}

// keepMembers does so for the members of a batch, of which those of one key stand together.
func (c *consumer) keepMembers(lead *run) bool {
	now := c.e.now()
	all := *lead.batch
	var kept []*run
	var back *lane // of a message that goes back and takes those behind it along
	c.dropCancelled(all)
	for i, m := range all {
		l := m.lane
		switch {
		case m.cancelled.Load():
		case l != nil && l == back || !c.mayStart(m, now):
			m.lost = c.leaseOver(m, now)
			c.post(m, *unseen(m, now))
			if l != nil {
				c.follow(m, driver.Release)
			}
			if c.strict() || m.lost {
				back = l
			}
		default:
			kept = append(kept, m)
		}
		ends := i+1 == len(all) || all[i+1].lane != l
		if ends && l != nil && (len(kept) == 0 || kept[len(kept)-1].lane != l) {
			c.lanes.advance(l, now)
		}
	}
	*lead.batch = kept
	return len(kept) > 0
}
