package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// How much is held that has not started: what free slots can take, and beyond that what is likely to start within
// prefetchTime. What then waits longer than patience after all is given back, for others to run.
const (
	prefetchTime  = 100 * time.Millisecond
	maxPrefetch   = 1024
	prefetchBytes = 16 << 20
	patience      = time.Second
)

// intake is the fetcher's side of a consumer. It is guarded by engine.mu.
type intake struct {
	wake    *sync.Cond
	parked  bool               // the fetcher waits for room
	fetches uint64             // so far
	asked   time.Duration      // when the fetch under way began; zero: there is none
	cancel  context.CancelFunc // ends the Receive under way; nil without one
}

// fetch subscribes and brings in deliveries until ctx ends.
func (c *consumer) fetch(ctx, work context.Context) {
	if !c.connect(ctx, work) {
		return
	}
	receiving, cancel := c.receiving(ctx)
	defer func() { cancel() }()
	delay := backoff(0)
	for {
		n, ok := c.awaitRoom(ctx)
		if !ok {
			return
		}
		if receiving.Err() != nil { // it was interrupted, for a suspect
			cancel()
			receiving, cancel = c.receiving(ctx)
		}
		ds, err := c.receive(receiving, n, delay != 0)
		c.accept(ds)
		switch {
		case err == nil:
			if delay != 0 {
				delay = 0
				c.e.setHealth(c, OK, nil)
			}
		case ctx.Err() != nil || receiving.Err() != nil:
		case closed(err):
			c.e.fail(err)
			return
		default:
			c.e.setHealth(c, Reconnecting, err)
			delay.sleep(ctx)
		}
	}
}

// receiving returns a context for Receive calls that a suspect can interrupt.
func (c *consumer) receiving(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	c.e.mu.Lock()
	c.intake.cancel = cancel
	if c.e.suspect != nil {
		cancel()
	}
	c.e.mu.Unlock()
	return ctx, cancel
}

// receive asks for at most n deliveries. After a failure the wait is bounded: if nothing fails in that time, the
// backend is back although it has nothing for us.
func (c *consumer) receive(ctx context.Context, n int, doubtful bool) ([]*driver.Delivery, error) {
	if !doubtful {
		return c.conn.Receive(ctx, n)
	}
	probe, cancel := context.WithTimeout(ctx, lastBackoff)
	defer cancel()
	ds, err := c.conn.Receive(probe, n)
	if errors.Is(err, context.DeadlineExceeded) && probe.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	return ds, err
}

// awaitRoom waits until something can be fetched and returns how much, or false when fetching is over.
func (c *consumer) awaitRoom(ctx context.Context) (int, bool) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.draining || ctx.Err() != nil {
			return 0, false
		}
		if n := c.room(); n > 0 {
			c.ask()
			e.fetches++
			return n, true
		}
		c.intake.parked = true
		e.parked++
		c.intake.wake.Wait()
	}
}

// room is how many deliveries to ask for now. Zero while less than half of what may be held is missing, so that fetches
// are few and large.
func (c *consumer) room() int {
	e := c.e
	if e.suspect != nil {
		return 0
	}
	promised, hungry := e.others(c)
	free := max(0, min(c.limit-c.inUse, e.pool.limit-e.active-e.zombies-promised)) * c.batchSize
	target := min(max(free, c.pace.prefetch), c.pace.fits())
	if c.timid > 0 {
		target = min(free, 1)
	}
	if hungry {
		target = min(target, max(0, c.share()-c.inUse)*c.batchSize)
	}
	held := c.lanes.ready.n
	if c.batch != nil {
		held += c.lanes.queued
	}
	if missing := target - held; missing*2 >= target || held < free {
		return missing
	}
	return 0
}

// accept takes in what was fetched.
func (c *consumer) accept(ds []*driver.Delivery) {
	e := c.e
	now := e.now()
	runs := make([]run, len(ds))
	for i, d := range ds {
		r := &runs[i]
		r.c, r.d, r.arrived = c, d, now
		r.ttlUntil = ttlEnd(d, now)
		r.leaseUntil = now + c.lease
		if !d.LeaseUntil.IsZero() {
			r.leaseUntil = d.LeaseUntil.Sub(e.epoch)
		}
		if e.hooks.Received != nil {
			e.hooks.Received(e.base, r.event())
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fetches--
	c.intake.fetches++
	size := 0
	for i := range runs {
		size += len(runs[i].d.Body)
		runs[i].fetch = c.intake.fetches
		c.admit(&runs[i])
	}
	c.intake.asked = 0
	c.pace.sized(size, len(ds))
	c.timid = max(0, c.timid-len(ds))
	c.settleSoon()
	e.offer(c)
	e.wakeSlot()
	if c.lanes.ready.n > 0 {
		e.watchUntil(now + c.patience())
	}
}

// admit puts one delivery where it belongs.
func (c *consumer) admit(r *run) {
	switch {
	case c.e.draining || c.e.suspect != nil:
		c.release(r)
	case r.d.Deliveries > c.e.options.MaxDeliveries:
		c.post(r, c.tooManyDeliveries(r.d))
	default:
		c.lanes.push(r)
	}
}

// patience is how long a message may wait for a slot before it is given back.
func (c *consumer) patience() time.Duration { return patience + c.batchWait }
