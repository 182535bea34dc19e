package redistest

import (
	"context"
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
