package worker

import (
	"context"
	"time"
)

// The context of a handler is its run. Most handlers of short messages never look at theirs, so a real one is made only
// when somebody asks. It may be cancelled before that, after that, or never.

// liveContext is a real context and how to end it.
type liveContext struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newLiveContext(base context.Context, deadline time.Time) *liveContext {
	ctx, cancel := context.WithCancelCause(base)
	if deadline.IsZero() {
		return &liveContext{ctx: ctx, cancel: cancel}
	}
	timed, stop := context.WithDeadlineCause(ctx, deadline, ErrTimeout)
	return &liveContext{ctx: timed, cancel: func(cause error) {
		cancel(cause)
		stop()
	}}
}

// newEndedContext is one that was cancelled before anybody asked for it.
func newEndedContext(base context.Context, cause error) *liveContext {
	l := newLiveContext(base, time.Time{})
	l.cancel(cause)
	return l
}

func (r *run) real() *liveContext {
	if l := r.live.Load(); l != nil {
		return l
	}
	l := newLiveContext(r.c.e.base, r.due())
	if !r.live.CompareAndSwap(nil, l) {
		l.cancel(nil) // somebody was faster
	}
	return r.live.Load()
}

func (r *run) due() time.Time {
	if r.c.timeout == 0 {
		return time.Time{}
	}
	return r.c.e.epoch.Add(r.started + r.c.timeout)
}

// cancel ends the context. The first cause stands.
func (r *run) cancel(cause error) {
	if r.live.Load() == nil && r.live.CompareAndSwap(nil, newEndedContext(r.c.e.base, cause)) {
		return
	}
	r.live.Load().cancel(cause)
}

// end cancels the context of a handler that has returned. It costs next to nothing if nobody asked for it.
func (r *run) end() {
	if r.live.CompareAndSwap(nil, r.c.e.ended) {
		return
	}
	r.live.Load().cancel(errReturned)
}

// cause tells why the context has ended, or nil.
func (r *run) cause() error {
	if l := r.live.Load(); l != nil {
		return context.Cause(l.ctx)
	}
	if r.c.timeout > 0 && r.c.e.now()-r.started >= r.c.timeout {
		return ErrTimeout
	}
	return nil
}

// Deadline is when the handler's Timeout is over.
func (r *run) Deadline() (time.Time, bool) { return r.due(), r.c.timeout != 0 }

// Done is closed when the handler should end.
func (r *run) Done() <-chan struct{} { return r.real().ctx.Done() }

// Err says whether the context has ended.
func (r *run) Err() error {
	if r.c.timeout == 0 && r.live.Load() == nil {
		return nil
	}
	return r.real().ctx.Err()
}

// runKey is the key under which a handler's context holds its run.
type runKey struct{}

// Value returns values of the context that Run was given. The standard library asks here for its own cancellation too.
func (r *run) Value(key any) any {
	if key == (runKey{}) {
		return r
	}
	return r.real().ctx.Value(key)
}

// String keeps printers of contexts from looking inside.
func (r *run) String() string { return "ferry handler context" }

var _ context.Context = (*run)(nil)
