package guard

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

// ErrLost is the cause of a handler's context when its slot, or its mark, was lost while it ran.
var ErrLost = errors.New("the guard lost its lease")

// keeper renews a lease while a handler runs, and ends the handler's context when it is lost. A handler that is quicker
// than a third of the lease costs a timer.
type keeper struct {
	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	lease  *leasekeeper.Lease
}

// keep starts a keeper for a lease that was asked for at a time. Its context is the handler's.
func keep(ctx context.Context, asked time.Time, lease time.Duration,
	renew func(ctx context.Context) (held bool, err error)) *keeper {
	k := new(keeper)
	k.ctx, k.cancel = context.WithCancelCause(ctx)
	k.lease = leasekeeper.Hold(ctx, asked, lease, func(ctx context.Context) error {
		held, err := renew(ctx)
		if err == nil && !held {
			return driver.ErrLeaseLost
		}
		return err
	}, func(error) { k.cancel(ErrLost) })
	return k
}

// stop ends the keeper and reports whether the lease was kept.
func (k *keeper) stop() bool {
	lost := k.lease.Stop()
	k.cancel(nil)
	return lost == nil
}
