package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

// hold begins the life of a lock that was taken: its context, and what renews it until that ends.
func (l *Lock) hold(ctx context.Context) {
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.ended = make(chan struct{})
	l.lease = leasekeeper.Hold(ctx, l.acquired, l.o.TTL, l.renew, l.over)
	go l.finish()
}

// finish stops the renewals when the context of the lock ends. When that was by the context given to Acquire, it gives
// the lock up.
func (l *Lock) finish() {
	defer close(l.ended)
	<-l.ctx.Done()
	_ = l.lease.Stop() // what it says is in l.lost
	l.mu.Lock()
	orphan := l.lost == nil && !l.released
	l.released = l.released || orphan
	l.mu.Unlock()
	if orphan {
		_ = l.give(context.WithoutCancel(l.ctx)) // otherwise it ends by itself
		l.o.Metrics.released(time.Since(l.acquired))
	}
}

// renew prolongs the lock. What is found with our token is a write of ours whose answer was lost. The epoch does not
// tell that: a write of another that demands nothing keeps it.
func (l *Lock) renew(ctx context.Context) error {
	l.mu.Lock()
	revision := l.revision
	l.mu.Unlock()
	r := l.kv.Apply(ctx, l.bucket, driver.KVOptions{Level: l.o.Level},
		driver.Write{Name: l.name, Data: l.data(), If: driver.Condition(revision), TTL: l.o.TTL, Quiet: true})[0]
	conflict := errors.Is(r.Err, ferry.ErrConflict)
	switch ours := conflict && r.Epoch == l.epoch && l.wrote(r.Value); {
	case r.Err == nil, ours:
		l.mu.Lock()
		l.revision = r.Revision
		l.mu.Unlock()
		if l.o.Level == 0 {
			return nil
		}
		return r.Err // nobody knows whether ours is stored at its level: it is written again
	case conflict:
		return l.notOurs(r.Err)
	}
	return r.Err
}

// over ends what is done under a lock that another may have. Under an optional one it goes on, if only our clock says
// so.
func (l *Lock) over(why error) {
	expired := errors.Is(why, leasekeeper.ErrExpired)
	if expired {
		why = l.timedOut()
	}
	if l.lose(why) && !(expired && l.o.Optional) {
		l.end(why)
	}
}
