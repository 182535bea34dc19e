package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// hold begins the life of a lock that was taken: its context, and what renews it until that ends.
func (l *Lock) hold(ctx context.Context) {
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.kept = make(chan struct{})
	l.mu.Lock()
	l.expiry = time.AfterFunc(time.Until(l.until), l.expire)
	l.mu.Unlock()
	go l.keep()
}

// keep renews the lock every third of its TTL until its context ends. When that was not by Release, it gives the lock up.
func (l *Lock) keep() {
	defer close(l.kept)
	every := l.o.TTL / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	for held := true; held; {
		select {
		case <-timer.C:
			held = l.renew()
			timer.Reset(every)
		case <-l.ctx.Done():
			held = false
		}
	}
	if l.ctx.Err() == nil { // it cannot be renewed: its context ends in time
		<-l.ctx.Done()
	}
	l.mu.Lock()
	orphan := l.lost == nil && !l.released // the context given to Acquire has ended
	l.released = l.released || orphan
	l.mu.Unlock()
	if orphan {
		l.expiry.Stop()
		_ = l.give(context.WithoutCancel(l.ctx)) // otherwise it ends by itself
		l.o.Metrics.released(time.Since(l.acquired))
	}
}

// renew prolongs the lock, trying as long as it can still be held, and reports whether it is. What is found with our token is a write of ours,
// after the first try, whose answer was lost. The epoch does not tell that: a write of another that demands nothing keeps it.
func (l *Lock) renew() bool {
	l.mu.Lock()
	revision, until := l.revision, l.until
	l.mu.Unlock()
	first := time.Now()
	for before := first; before.Before(until); before = time.Now() { // otherwise a pause was too long
		ctx, cancel := context.WithDeadline(l.ctx, until)
		r := l.kv.Apply(ctx, l.bucket, driver.KVOptions{Level: l.o.Level},
			driver.Write{Name: l.name, Data: l.data(), If: driver.Condition(revision), TTL: l.o.TTL, Quiet: true})[0]
		again := r.Err != nil && !permanent(r.Err) && sleep(ctx, l.o.TTL/20)
		cancel()
		conflict := errors.Is(r.Err, ferry.ErrConflict)
		ours := conflict && r.Epoch == l.epoch && l.wrote(r.Value)
		switch {
		case r.Err == nil:
			l.prolong(r.Revision, before.Add(usable(l.o.TTL)))
			return true
		case ours && l.o.Level == 0:
			l.prolong(r.Revision, first.Add(usable(l.o.TTL)))
			return true
		case ours: // but nobody knows whether at its level
			revision = r.Revision
			l.prolong(revision, until)
			again = sleep(l.ctx, l.o.TTL/20)
		case conflict:
			l.takenAway(r.Err)
			return false
		}
		if !again {
			return false
		}
	}
	return false
}

func (l *Lock) prolong(revision uint64, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revision = revision
	if until.After(l.until) {
		l.until = until
		l.expiry.Reset(time.Until(until))
	}
}

// takenAway ends what is done under a lock that another may have.
func (l *Lock) takenAway(cause error) {
	why := l.notOurs(cause)
	if l.lose(why) {
		l.end(why)
	}
}

// expire ends the lock by our clock, unless it was prolonged meanwhile. What is done under an optional one goes on.
func (l *Lock) expire() {
	l.mu.Lock()
	over := !time.Now().Before(l.until)
	l.mu.Unlock()
	if !over {
		return // prolong has set the timer again
	}
	if why := l.timedOut(); l.lose(why) && !l.o.Optional {
		l.end(why)
	}
}
