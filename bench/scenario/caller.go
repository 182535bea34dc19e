package scenario

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

const batchSize = 100

// caller is one goroutine that publishes. It carries its own numbers on from one stretch to the next.
type caller struct {
	rig       *rig
	number    int
	next      int // its next message
	limit     int // of this stretch
	told      int // of next, already in rig.published
	key       keyChoice
	publisher system.Publisher
	buffers   [][]byte // reused where the system keeps no bodies
}

// publishStyle publishes one message at least, until stop or until the caller has reached its limit.
type publishStyle func(ctx context.Context, c *caller, stop *atomic.Bool, ahead int) error

// message makes the caller's next message in buffer number slot.
func (c *caller) message(slot int, stamp time.Time) system.Message {
	for len(c.buffers) <= slot {
		c.buffers = append(c.buffers, make([]byte, c.rig.bodies.Size()))
	}
	buf := c.buffers[slot]
	if c.publisher.KeepsBodies() {
		buf = make([]byte, c.rig.bodies.Size())
	}
	seq := c.rig.ledger.Seq(c.number, c.next)
	c.rig.bodies.Fill(buf, seq, stamp)
	c.next++
	m := system.Message{Body: buf}
	if c.key != nil {
		m.Key = c.key(seq)
	}
	return m
}

// wait holds the caller while more than ahead messages are not handled. Zero: no bound.
func (c *caller) wait(ctx context.Context, stop *atomic.Bool, ahead int) {
	if ahead == 0 || c.next-c.told < 32 {
		return
	}
	published := c.rig.published.Add(int64(c.next - c.told))
	c.told = c.next
	for int(published)-c.rig.ledger.Handled() > ahead && !stop.Load() && ctx.Err() == nil {
		time.Sleep(50 * time.Microsecond)
		published = c.rig.published.Load()
	}
}

func singles(ctx context.Context, c *caller, stop *atomic.Bool, ahead int) error {
	for c.next < c.limit {
		if err := c.publisher.Publish(ctx, c.message(0, time.Time{})); err != nil {
			return err
		}
		if c.wait(ctx, stop, ahead); stop.Load() {
			break
		}
	}
	return nil
}

func batches(ctx context.Context, c *caller, stop *atomic.Bool, ahead int) error {
	ms := make([]system.Message, 0, batchSize)
	for c.next < c.limit {
		ms = ms[:0]
		for c.next < c.limit && len(ms) < batchSize {
			ms = append(ms, c.message(len(ms), time.Time{}))
		}
		if err := c.publisher.PublishBatch(ctx, ms); err != nil {
			return err
		}
		if c.wait(ctx, stop, ahead); stop.Load() {
			break
		}
	}
	return nil
}

func async(ctx context.Context, c *caller, stop *atomic.Bool, ahead int) error {
	for c.next < c.limit {
		if err := c.publisher.PublishAsync(ctx, c.message(0, time.Time{})); err != nil {
			return err
		}
		if c.wait(ctx, stop, ahead); stop.Load() {
			break
		}
	}
	return c.publisher.Flush(ctx)
}

// paced publishes one message each interval, on time or as soon after it as the system lets it. The stamp of a message
// is when it was due, so that a stall of the system counts against every message that it held up.
func paced(interval time.Duration, begin time.Time) publishStyle {
	return func(ctx context.Context, c *caller, stop *atomic.Bool, _ int) error {
		for due := begin.Add(interval * time.Duration(c.number) / time.Duration(len(c.rig.callers))); c.next < c.limit &&
			!stop.Load(); due = due.Add(interval) {
			sleepUntil(due)
			if err := c.publisher.Publish(ctx, c.message(0, due)); err != nil {
				return err
			}
		}
		return nil
	}
}

// sleepUntil is exact to about a microsecond: timers are not, so that it yields to others through the last stretch.
func sleepUntil(t time.Time) {
	for {
		switch d := time.Until(t); {
		case d <= 0:
			return
		case d > 2*time.Millisecond:
			time.Sleep(d - time.Millisecond)
		default:
			runtime.Gosched()
		}
	}
}
