package leasekeeper

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// ErrExpired is why a lease is lost that could not be renewed in time. It is an ErrLeaseLost.
var ErrExpired error = driver.NewError(driver.ErrLeaseLost, "the lease was not renewed in time",
	"see whether what gave it is reachable; a process that is paused for longer than a lease loses it", nil)

// Lease is renewed until Stop, or until it is lost. Before its first renewal it costs one timer and no goroutine: most
// handlers are quicker than that.
type Lease struct {
	asked time.Time // for the lease, at first
	lease time.Duration
	renew func(ctx context.Context) error
	lost  func(why error)

	ctx   context.Context // of renewals
	halt  context.CancelFunc
	start *time.Timer
	ended chan struct{} // closed when nothing renews it any more

	mu      sync.Mutex
	until   time.Time   // from then on another may have it
	expiry  *time.Timer // nil before the first renewal
	stopped bool
	why     error // it is lost
}

// Hold keeps a lease that was asked for at a time. It calls renew, whose ErrLeaseLost means that another may have it.
// It calls lost once, before another can have it, unless Stop came first: with that error, or with ErrExpired. Renewals
// have the values of ctx but not its end: who works under the lease may go on after it.
func Hold(ctx context.Context, asked time.Time, lease time.Duration, renew func(ctx context.Context) error,
	lost func(why error)) *Lease {
	l := &Lease{asked: asked, lease: lease, renew: renew, lost: lost, until: asked.Add(Usable(lease)),
		ended: make(chan struct{})}
	l.ctx, l.halt = context.WithCancel(context.WithoutCancel(ctx))
	l.start = time.AfterFunc(time.Until(asked.Add(lease/3)), l.keep)
	return l
}

// Err says why the lease is lost, or nil. It asks the clock, too.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil && !time.Now().Before(l.until) {
		return ErrExpired
	}
	return l.why
}

// Stop ends the renewals, waits for one that is under way, and returns why the lease was lost before, or nil. It may be
// called again; lost must not call it.
func (l *Lease) Stop() error {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.halt()
	if l.start.Stop() {
		close(l.ended)
	}
	<-l.ended
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// keep renews from the first time on. Expiry has a timer of its own, for a renewal that hangs.
func (l *Lease) keep() {
	defer close(l.ended)
	l.mu.Lock()
	l.expiry = time.AfterFunc(time.Until(l.until), l.expire)
	l.mu.Unlock()
	defer l.expiry.Stop()
	if why := Run(l.ctx, l.asked, l.lease, l.prolong); why != nil {
		l.lose(why)
	}
}

// prolong renews once. The new lease counts from the first try: its answer may have been the one that was lost.
func (l *Lease) prolong(ctx context.Context, first time.Time) error {
	l.mu.Lock()
	until := l.until
	l.mu.Unlock()
	if !time.Now().Before(until) {
		return ErrExpired // a pause was too long
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := l.renew(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = first.Add(Usable(l.lease))
	l.expiry.Reset(time.Until(l.until))
	return nil
}

// expire ends the lease by our clock, unless it was prolonged meanwhile.
func (l *Lease) expire() {
	l.mu.Lock()
	over := !time.Now().Before(l.until)
	l.mu.Unlock()
	if over {
		l.lose(ErrExpired)
	}
}

func (l *Lease) lose(why error) {
	l.mu.Lock()
	news := l.why == nil && !l.stopped
	if news {
		l.why = why
	}
	l.mu.Unlock()
	if news {
		l.lost(why)
		l.halt()
	}
}
