package redistest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// until calls check until it returns nil, and returns its last complaint when the context ends first.
func until(ctx context.Context, check func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

var errStalled = errors.New("it takes too long")

// untilStalled is until without an end of its own: it gives up when progress has told nothing new for the time stall.
func untilStalled(ctx context.Context, stall time.Duration, progress func() string, check func() error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	late := time.AfterFunc(stall, func() { end(errStalled) })
	defer late.Stop()
	last := ""
	return until(ctx, func() error {
		err := check()
		if err == nil {
			return nil
		}
		if now := progress(); now != "" && now != last {
			last = now
			late.Reset(stall)
		}
		return err
	})
}
