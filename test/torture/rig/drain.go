package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// drainThrough ends the producers, waits until nothing is left as d sees it or the time is over, and ends the
// consumers.
func (o Options) drainThrough(ctx context.Context, d driver.Driver, c *cast) error {
	c.dismiss(producer)
	if err := o.awaitEnd(ctx, c, producer); err != nil {
		return err
	}
	if err := o.drained(ctx, d); err != nil {
		return err
	}
	c.dismiss(consumer)
	return o.awaitEnd(ctx, c, consumer)
}

// awaitEnd waits until the last process of a role is over.
func (o Options) awaitEnd(ctx context.Context, c *cast, role string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Drain, errors.New("the time to stop is over"))
	defer cancel()
	return c.gone(ctx, role)
}

// drained waits until nothing is left to do, or the time is over: what is left then is for the checker to find. A look
// that fails, because its connection went with a server for instance, is taken again.
func (o Options) drained(ctx context.Context, d driver.Driver) error {
	end := time.Now().Add(o.Drain)
	var failed error
	for time.Now().Before(end) && ctx.Err() == nil {
		s, err := d.Stats(ctx, Topic)
		if err == nil && workload.Left(s, groups()) == 0 {
			return nil
		}
		failed = err
		sleep(ctx, 20*time.Millisecond)
	}
	if failed != nil {
		return fmt.Errorf("while draining: %w", failed)
	}
	return nil
}
