package natsjs

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry/bench/system"
)

// pullMessages is how many messages the client asks for ahead of the handlers.
const pullMessages = 5000

// Consume runs short handlers in the callback itself, which is the fastest, and others in goroutines of their own.
func (n *session) Consume(_ context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	c := &consumer{conn: n}
	handle := func(m jetstream.Msg) {
		var err error
		if h(m.Data()) == nil {
			err = m.Ack()
		} else {
			err = m.NakWithDelay(o.RetryAfter)
		}
		c.note(err)
	}
	receive := handle
	if o.Concurrency > 1 {
		c.work = make(chan jetstream.Msg)
		for range o.Concurrency {
			c.running.Go(func() {
				for m := range c.work {
					handle(m)
				}
			})
		}
		receive = func(m jetstream.Msg) { c.work <- m }
	}
	var err error
	c.pull, err = n.consumer.Consume(receive, jetstream.PullMaxMessages(pullMessages),
		jetstream.PullExpiry(30*time.Second))
	return c, err
}

type consumer struct {
	conn    *session
	pull    jetstream.ConsumeContext
	work    chan jetstream.Msg
	running sync.WaitGroup

	mu  sync.Mutex
	err error // the first failed acknowledgement
}

func (c *consumer) note(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *consumer) Stop(ctx context.Context) error {
	c.pull.Drain()
	select {
	case <-c.pull.Closed():
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.work != nil {
		close(c.work)
		c.running.Wait()
	}
	if err := c.conn.out.FlushWithContext(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
