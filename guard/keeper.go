package guard

import (
	"context"
	"errors"
	"time"
)

// ErrLost is the cause of a handler's context when its slot, or its mark, was lost while it ran.
var ErrLost = errors.New("the guard lost its lease")

// keeper renews a lease while a handler runs, and ends the handler's context when it is lost. A handler that is quicker
// than a third of the lease costs a timer.
type keeper struct {
	ctx    context.Context // the handler's
	cancel context.CancelCauseFunc
	asking context.Context // of renewals, which outlive the handler's
	halt   context.CancelFunc
	renew  func(ctx context.Context) (held bool, err error)
	lease  time.Duration
	until  time.Time // the lease, reckoned from before it was asked for
	timer  *time.Timer
	quit   chan struct{}
	ended  chan struct{}
}

// keep starts a keeper for a lease that was asked for at a time. Its context is the handler's.
func keep(ctx context.Context, asked time.Time, lease time.Duration, renew func(ctx context.Context) (bool, error)) *keeper {
	k := &keeper{renew: renew, lease: lease, until: asked.Add(lease), quit: make(chan struct{}), ended: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancelCause(ctx)
	k.asking, k.halt = context.WithCancel(context.WithoutCancel(ctx))
	k.timer = time.AfterFunc(lease/3, k.run)
	return k
}

func (k *keeper) run() {
	defer close(k.ended)
	tick := time.NewTicker(k.lease / 3)
	defer tick.Stop()
	for {
		if !k.try() && k.asking.Err() == nil {
			k.cancel(ErrLost)
			return
		}
		select {
		case <-k.quit:
			return
		case <-tick.C:
		}
	}
}

// try renews once, and reports whether the lease may still be ours.
func (k *keeper) try() bool {
	asked := time.Now()
	ctx, cancel := context.WithDeadline(k.asking, k.until)
	defer cancel()
	held, err := k.renew(ctx)
	switch {
	case err == nil && held:
		k.until = asked.Add(k.lease)
		return true
	case err == nil:
		return false
	}
	return time.Now().Before(k.until.Add(-k.lease / 6)) // the store is away: until the lease ends it is ours
}

// stop ends the keeper and reports whether the lease was kept.
func (k *keeper) stop() bool {
	k.halt()
	if !k.timer.Stop() {
		close(k.quit)
		<-k.ended
	}
	lost := errors.Is(context.Cause(k.ctx), ErrLost)
	k.cancel(nil)
	return !lost
}
