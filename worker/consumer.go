package worker

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

// consumer is one handler at work: its subscription, what it holds, and what it has to settle.
type consumer struct {
	e            *engine
	topic, group string
	handle       Handler
	batch        batchHandler
	handlerSettings
	retryPolicy driver.RetryPolicy
	backoff     func(attempt int, err error) time.Duration // instead of retryPolicy; may be nil
	limit       int                                        // most slots at once
	margin      time.Duration                              // a lease is taken for lost this long before it ends

	conn driver.Subscription // set by connect, before anything is fetched

	// Guarded by engine.mu.
	lanes    lanes
	inUse    int // slots, zombies included
	runnable bool
	after    *consumer // in the pool's queue of runnable consumers
	wants    demand    // as it is in engine.wants
	pace     pace
	intake   intake
	outbox   outbox
	starts   starts
	count    counters
	recent   recent
	health   health
	quiet    bool                   // claims and starts nothing
	left     bool                   // its subscription is closed, or about to be
	leaving  map[*run]chan struct{} // closed when a run is gone that somebody waits for
}

func newConsumer(e *engine, h *registration, outer []Middleware) *consumer {
	c := &consumer{
		e: e, topic: h.topic, group: h.group, batch: h.batch,
		handlerSettings: h.handlerSettings,
		retryPolicy:     h.retry,
		backoff:         h.backoff,
		quiet:           h.quiet,
	}
	c.setLimit(e.options.most())
	if h.handle != nil {
		c.handle = chain(h.handle, []Middleware{undo(e.broker)}, outer, h.middleware)
		c.batchSize, c.batchWait = 1, 0
	}
	if h.batch != nil {
		c.batch = undoBatch(e.broker, h.batch, outer, h.middleware)
	}
	if c.lease == 0 {
		c.lease = e.caps.DefaultLease
	}
	c.margin = c.lease - leasekeeper.Usable(c.lease)
	c.leaving = make(map[*run]chan struct{})
	c.intake.wake = sync.NewCond(&e.mu)
	c.starts.wake = sync.NewCond(&e.mu)
	c.outbox.wake = sync.NewCond(&e.mu)
	c.health.set(Starting, time.Now(), nil)
	return c
}

func (c *consumer) strict() bool { return c.order == driver.Strict }

// setLimit bounds the slots of c, in a worker that runs so many handlers.
func (c *consumer) setLimit(most int) {
	c.limit = most
	if c.concurrencySet {
		c.limit = min(c.concurrency, most)
	}
}

// roomToGrow is up to how many slots a handler may get by SetConcurrency without holding less than it could.
const roomToGrow = 1024

// connect subscribes. It tries again until it succeeds, ctx ends, or the broker says no for good.
func (c *consumer) connect(ctx, work context.Context) bool {
	for delay := backoff(0); ; {
		err := c.subscribe(ctx)
		if err == nil {
			c.e.serving.Go(func() { c.settle(work) })
			c.e.serving.Go(func() { c.renew(work) })
			c.e.setHealth(c, OK, nil)
			c.e.stands()
			c.noticeUnread(work)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if permanent(err) {
			c.e.fail(err)
			return false
		}
		c.e.setHealth(c, Reconnecting, err)
		if !delay.sleep(ctx) {
			return false
		}
	}
}

// stands counts a subscription that stands.
func (e *engine) stands() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.standing++
	if e.standing == len(e.consumers) {
		close(e.ready)
	}
}

func (c *consumer) subscribe(ctx context.Context) error {
	if authorize := c.e.hooks.Authorize; authorize != nil {
		if err := authorize(ctx, ferry.Access{Topic: c.topic, Group: c.group}); err != nil {
			return err
		}
	}
	o := c.subscription(c.topic, c.e.instance)
	o.MaxInflight = maxPrefetch + max(c.limit, roomToGrow)*max(c.maxRun, c.batchSize) + maxSuspects*c.maxRun
	o.Revoking = c.revoking
	conn, err := c.e.broker.Driver().Subscribe(ctx, o)
	if err != nil {
		return err
	}
	c.e.mu.Lock()
	c.conn = conn
	c.e.mu.Unlock()
	return nil
}
