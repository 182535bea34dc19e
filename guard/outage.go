package guard

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// outage keeps messages from asking a store that does not answer: each would wait for it in a slot of the worker. One
// message at a time tries, less and less often.
type outage struct {
	epoch    time.Time
	until    atomic.Int64 // nobody asks before; zero: the store answers
	failures atomic.Int32
	timeout  time.Duration // of one call; zero: none
	instant  bool          // no call waits for anything
}

const (
	storeTimeout   = 2 * time.Second
	outageShortest = 100 * time.Millisecond
	outageLongest  = 5 * time.Second
)

func newOutage(s Store) *outage {
	o := &outage{epoch: time.Now(), timeout: storeTimeout}
	switch s.(type) {
	case *memoryStore:
		o.timeout, o.instant = 0, true
	case *dirStore:
		o.timeout = 0
	}
	return o
}

var errStoreDown = driver.NewError(driver.ErrNotApplied, "the guard store did not answer lately",
	"look at the store; messages wait until it answers", nil)

// may reports whether the store may be asked now; if not, how long to wait.
func (o *outage) may() (time.Duration, bool) {
	until := o.until.Load()
	if until == 0 {
		return 0, true
	}
	now := int64(time.Since(o.epoch))
	if now < until {
		return jitter(time.Duration(until - now)), false
	}
	if o.until.CompareAndSwap(until, now+int64(max(o.timeout, outageShortest))) {
		return 0, true
	}
	return jitter(outageShortest), false
}

// bounded returns a context for one call, and what ends it. In this process no call takes long.
func (o *outage) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, o.timeout)
}

// learn takes in how a call went, and says how long to wait if it failed.
func (o *outage) learn(err error) time.Duration {
	if err == nil {
		if o.until.Load() != 0 {
			o.until.Store(0)
			o.failures.Store(0)
		}
		return 0
	}
	n := min(o.failures.Add(1), 16)
	wait := min(outageShortest<<(n-1), outageLongest)
	o.until.Store(int64(time.Since(o.epoch) + wait))
	return jitter(wait)
}

// later runs a call that frees something: it is made even if the message's context has ended.
func (o *outage) later(ctx context.Context, ask func(ctx context.Context) error) error {
	if o.instant {
		return ask(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	if o.timeout == 0 {
		return ask(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return ask(ctx)
}

// jitter spreads a wait over its second half and a bit more, so that not everybody comes back at once.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/2+1) }
