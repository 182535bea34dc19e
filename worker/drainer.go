package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	stopGrace    = time.Second     // for handlers to return after their context ended
	settleGrace  = 5 * time.Second // for the broker to accept the last outcomes
	closeTimeout = 5 * time.Second
)

// drain ends the work: nothing more is fetched or started, what waits is given back at once, handlers may finish, and
// everything is settled before the subscriptions close.
func (e *engine) drain(endWork func()) error {
	e.beginDrain()
	e.fetching.Wait()
	e.yield()
	limit := e.options.StopTimeout
	if closed(e.failure()) {
		limit = 0 // no outcome can be accepted any more
	}
	if !e.await(limit, e.allReturned) {
		e.cancelRunning()
		if !e.await(stopGrace, e.allReturned) {
			e.abandonRunning()
		}
	}
	late := e.flush()
	endWork()
	e.serving.Wait()
	err := e.unsubscribe()
	e.freeUnique()                   // what is closed has committed what it settled
	e.await(stopGrace, e.slotsEnded) // zombies too, in case they are about to return
	e.logLeftOut(never)
	return errors.Join(e.failure(), late, err, e.abandoned())
}

func (e *engine) beginDrain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.draining = true
	for _, c := range e.consumers {
		c.giveBackAll()
		c.settleSoon()
		c.intake.wake.Broadcast()
		if c.health.state != Starting {
			c.health.set(Stopping, time.Now(), nil)
		}
	}
	e.pool.wake.Broadcast()
}

// yield tells the broker that nothing more is fetched, so that others get what it keeps for us. Those that do not
// answer in time pass it on when they are closed.
func (e *engine) yield() {
	ctx, cancel := context.WithTimeout(e.base, closeTimeout)
	var told sync.WaitGroup
	for _, c := range e.consumers {
		if c.conn == nil {
			continue
		}
		told.Go(func() {
			if err := c.conn.Drain(ctx); err != nil && !closed(err) {
				e.log.WarnContext(ctx, "the broker was not told that the worker drains",
					"topic", c.topic, "group", c.group, "error", err)
			}
		})
	}
	e.leaving.Go(func() {
		told.Wait()
		cancel()
	})
}

// closeIdle closes the subscriptions of which nothing is held, while handlers of others may still run.
func (e *engine) closeIdle() {
	for _, c := range e.consumers {
		if c.conn != nil && !c.left && c.idle() {
			c.unsubscribe()
		}
	}
}

// idle reports whether nothing of c runs or has to be settled. What a zombie returns is not settled.
func (c *consumer) idle() bool {
	return c.inUse == c.count.zombies && len(c.outbox.list) == 0 && len(c.outbox.sending) == 0
}

// await waits until done holds, for at most limit, and reports whether it does.
func (e *engine) await(limit time.Duration, done func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for over := false; ; {
		e.mu.Lock()
		ok := done()
		e.closeIdle()
		e.mu.Unlock()
		if ok || over {
			return ok
		}
		select {
		case <-e.progress:
		case <-timer.C:
			over = true // look once more
		}
	}
}

func (e *engine) allReturned() bool { return e.active == 0 }
func (e *engine) allSettled() bool  { return e.unsettled == 0 }
func (e *engine) slotsEnded() bool  { return len(e.pool.slots) == 0 }

// moved tells the drainer that something has changed.
func (e *engine) moved() {
	if !e.draining {
		return
	}
	select {
	case e.progress <- struct{}{}:
	default:
	}
}

// cancelRunning ends the contexts of all handlers.
func (e *engine) cancelRunning() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.eachActive(func(r *run) { r.cancel(ErrStopping) })
}

// abandonRunning gives back what still runs.
func (e *engine) abandonRunning() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.eachActive(func(r *run) { r.c.abandon(r, now, released) })
}

func (e *engine) eachActive(f func(*run)) {
	for _, s := range e.pool.slots {
		if s.cur != nil && !s.cur.abandoned {
			f(s.cur)
		}
	}
}

// flush waits until everything is settled, and ends the goroutines that settle.
func (e *engine) flush() error {
	flushed := e.await(settleGrace, e.allSettled)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closing = true
	for _, c := range e.consumers {
		c.outbox.wake.Broadcast()
	}
	e.watch.next = never
	e.watchUntil(0)
	if flushed {
		return nil
	}
	return driver.NewError(driver.ErrNotApplied,
		fmt.Sprintf("the broker did not accept %d outcomes before the worker stopped", e.unsettled),
		"the messages are delivered again; see whether the broker is reachable", nil)
}

// abandoned names the handlers that still run.
func (e *engine) abandoned() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, s := range e.pool.slots {
		if s.cur != nil {
			names = append(names, s.cur.c.topic+"/"+s.cur.c.group)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return driver.NewError(ErrAbandoned, fmt.Sprintf("%d handlers still run: %s", len(names), strings.Join(names, ", ")),
		"make them return when their context ends, or set a longer StopTimeout", nil)
}

// unsubscribe closes what is not closed yet, which gives back whatever is still held.
func (e *engine) unsubscribe() error {
	e.mu.Lock()
	for _, c := range e.consumers {
		if c.conn != nil && !c.left {
			c.unsubscribe()
		}
	}
	e.mu.Unlock()
	e.leaving.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.unclosed...)
}

// unsubscribe closes the subscription of c. engine.mu is held.
func (c *consumer) unsubscribe() {
	e := c.e
	c.left = true
	e.leaving.Go(func() {
		ctx, cancel := context.WithTimeout(e.base, closeTimeout)
		defer cancel()
		if err := c.conn.Close(ctx); err != nil && !closed(err) {
			e.mu.Lock()
			e.unclosed = append(e.unclosed, err)
			e.mu.Unlock()
		}
		e.setHealth(c, Stopped, nil)
	})
}

func (e *engine) failure() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}
