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

// fetchNear is how many deliveries are asked for at once of a broker in this process. A call costs next to nothing
// there, and what came is handled while the next ones come, and while it is still in the processor's cache.
const fetchNear = 128

// intake is the fetcher's side of a consumer. It is guarded by engine.mu.
type intake struct {
	wake    *sync.Cond
	open    context.Context    // of claims; ends when the consumer is made quiet, or the drain begins
	shut    context.CancelFunc // ends open
	parked  bool               // the fetcher waits for room
	gate    gate               // where
	place   int
	fetches uint64        // so far
	asked   time.Duration // when the fetch under way began; zero: there is none
}

// fetch subscribes and brings in deliveries until ctx ends.
func (c *consumer) fetch(ctx, work context.Context) {
	if !c.connect(ctx, work) {
		return
	}
	shut := c.openIntake()
	defer shut()
	delay := backoff(0)
	for {
		n, open, ok := c.awaitRoom(ctx)
		if !ok {
			return
		}
		ds, err := c.receive(open, n, delay != 0)
		c.accept(ds)
		switch {
		case err == nil:
			if delay != 0 {
				delay = 0
				c.e.setHealth(c, OK, nil)
			}
		case ctx.Err() != nil:
		case open.Err() != nil:
			c.accept(c.collectCut(ctx, n))
		case closed(err):
			c.e.fail(err)
			return
		default:
			c.e.setHealth(c, Reconnecting, err)
			delay.sleep(ctx)
		}
	}
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
func (c *consumer) awaitRoom(ctx context.Context) (n int, open context.Context, ok bool) {
	e := c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.draining || ctx.Err() != nil {
			return 0, nil, false
		}
		c.reckon()
		if n := c.roomBeside(); n > 0 {
			c.ask()
			return c.atOnce(n), c.intake.open, true
		}
		c.park()
		c.reckon() // it may be hungry now
		c.intake.wake.Wait()
	}
}

// atOnce is how many deliveries one call asks for while there is room for n.
func (c *consumer) atOnce(n int) int {
	if c.e.caps.Local {
		return min(n, max(fetchNear, c.batchSize))
	}
	return n
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
	c.intake.fetches++
	size := 0
	for i := range runs {
		size += len(runs[i].d.Body)
		runs[i].fetch = c.intake.fetches
		c.count.received(runs[i].d)
		c.admit(&runs[i])
	}
	c.intake.asked = 0
	c.pace.sized(size, len(ds))
	c.settleSoon()
	e.offer(c)
	e.wakeSlot()
	c.makeRoom() // of those that held back for c, too
	if c.lanes.ready.n > 0 {
		e.watchUntil(now + c.patience())
	}
}

// admit puts one delivery where it belongs.
func (c *consumer) admit(r *run) {
	switch {
	case c.e.draining, c.quiet:
		c.release(r)
	case r.d.Deliveries > c.e.options.MaxDeliveries:
		dead := c.tooManyDeliveries(r.d)
		c.count.decided(&dead)
		c.post(r, dead)
	default:
		c.lanes.push(r)
	}
}

// patience is how long a message may wait for a slot before it is given back.
func (c *consumer) patience() time.Duration { return patience + c.batchWait }
