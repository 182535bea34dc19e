package redis

import (
	"context"
	"sync"
)

// combiner gathers concurrent requests into one call of the server. Alone, a request is sent at once; those that come
// while calls are under way travel together in the next. It has no goroutine: of those that wait, one sends for all.
type combiner[Q, A any] struct {
	send func(ctx context.Context, qs []Q) ([]A, error)

	mu      sync.Mutex
	queue   []*request[Q, A]
	senders int
}

// request is one that waits.
type request[Q, A any] struct {
	q      Q
	wake   chan struct{} // answered, or told to send
	answer A
	err    error
	done   bool
	leads  bool
}

const (
	maxSenders = 2
	maxBatch   = 128
)

func newCombiner[Q, A any](send func(ctx context.Context, qs []Q) ([]A, error)) *combiner[Q, A] {
	return &combiner[Q, A]{send: send}
}

// do has a request answered. When ctx ends first it may have been sent.
func (c *combiner[Q, A]) do(ctx context.Context, q Q) (A, error) {
	r := &request[Q, A]{q: q, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, r)
	if c.senders < maxSenders {
		c.senders++
		r.leads = true
	}
	for {
		switch {
		case r.done && r.leads:
			c.handOver()
			fallthrough
		case r.done:
			c.mu.Unlock()
			return r.answer, r.err
		case r.leads:
			c.sendSome(ctx)
			continue
		}
		c.mu.Unlock()
		select {
		case <-r.wake:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			if !r.done && !r.leads {
				c.abandon(r)
				c.mu.Unlock()
				var none A
				return none, context.Cause(ctx)
			}
		}
	}
}

// sendSome sends the first of the queue. c.mu is held, but not while it sends.
func (c *combiner[Q, A]) sendSome(ctx context.Context) {
	n := min(len(c.queue), maxBatch)
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	c.mu.Unlock()
	qs := make([]Q, n)
	for i, r := range batch {
		qs[i] = r.q
	}
	answers, err := c.send(context.WithoutCancel(ctx), qs) // others wait for it, too
	c.mu.Lock()
	for i, r := range batch {
		r.done, r.err = true, err
		if err == nil {
			r.answer = answers[i]
		}
		r.rouse()
	}
}

func (r *request[Q, A]) rouse() {
	select {
	case r.wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// handOver lets the first that still waits send. c.mu is held.
func (c *combiner[Q, A]) handOver() {
	for _, r := range c.queue {
		if !r.leads {
			r.leads = true
			r.rouse()
			return
		}
	}
	c.senders--
}

// abandon takes a request out of the queue, if it was not sent. c.mu is held.
func (c *combiner[Q, A]) abandon(r *request[Q, A]) {
	for i, other := range c.queue {
		if other == r {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			return
		}
	}
}
