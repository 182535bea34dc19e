package worker

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// revoking is called by the driver when deliveries are about to move to another consumer. What has not started is given
// back, what runs may finish until ctx ends, and what still runs then is lost.
func (c *consumer) revoking(ctx context.Context, ds []*driver.Delivery) {
	going := make(map[*driver.Delivery]bool, len(ds))
	for _, d := range ds {
		going[d] = true
	}
	runs := c.giveBackThese(going)
	for _, r := range runs {
		if !c.awaitGone(ctx, r) {
			break
		}
	}
	c.loseThese(runs)
}

// giveBackThese gives back what has not started, and returns every run that is going and not settled yet.
func (c *consumer) giveBackThese(going map[*driver.Delivery]bool) (runs []*run) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range c.lanes.keys {
		if l.queue.head != nil && (going[l.queue.head.d] || going[l.queue.tail.d]) {
			c.giveBackQueue(l)
		}
	}
	ready := c.lanes.ready
	c.lanes.ready = runList{}
	for r := ready.pop(); r != nil; r = ready.pop() {
		if going[r.d] {
			c.giveBack(r)
		} else {
			c.lanes.ready.push(r)
		}
	}
	for _, r := range c.takeWaitingSuspects(func(r *run) bool { return going[r.d] }) {
		c.giveBack(r)
	}
	c.settleSoon()
	c.makeRoom()
	c.eachHeld(func(r *run) {
		if going[r.d] || r.state == settling { // its return may be that of others
			runs = append(runs, r)
			r.recalled = r.state == starting
			if !r.awaited {
				r.awaited = true
				c.leaving[r] = make(chan struct{})
			}
		}
	})
	return runs
}

// awaitGone waits until r is settled. It reports false if ctx ended before.
func (c *consumer) awaitGone(ctx context.Context, r *run) bool {
	c.e.mu.Lock()
	left := c.leaving[r]
	c.e.mu.Unlock()
	if left == nil {
		return true
	}
	select {
	case <-left:
		return true
	case <-ctx.Done():
		return false
	}
}

// loseThese cancels the handlers of those that still run.
func (c *consumer) loseThese(runs []*run) {
	e := c.e
	var lost []*run
	e.mu.Lock()
	now := e.now()
	for _, r := range runs {
		switch {
		case r.state == starting:
			r.lost = true // and is not started
		case r.state == running && !r.abandoned && c.lose(c.leader(r), r, true, now):
			lost = append(lost, r)
		}
	}
	e.mu.Unlock()
	e.announceLost(lost)
}
