package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/leasekeeper"
)

const (
	// DefaultTTL is that of a lock: how long it stays taken after its holder was killed.
	DefaultTTL = 5 * time.Second
	// DefaultBucket is where locks lie.
	DefaultBucket = "locks"
)

// LockOptions of a lock. The zero value is a good one.
type LockOptions struct {
	// Bucket is where the lock lies, 1 to 128 letters, digits, '.', '_' or '-'. One beside the state it guards lets writes
	// of that state be fenced; those of Ferry's own (driver.ReservedBucket) are refused. Defaults to DefaultBucket.
	Bucket string
	// TTL is how long the lock stays taken after its holder was killed. At least a second. Defaults to DefaultTTL.
	TTL time.Duration
	// Wait is how long Acquire waits for the lock. Defaults to as long as its context lives.
	Wait time.Duration
	// Owner is whom others see as the holder. Defaults to host and process id.
	Owner string
	// Level is what a taken lock must survive, as for a publish. Defaults to that of the broker.
	Level driver.Durability
	// Optional lets the work go on without the lock when the broker cannot be asked: Lock.Err then says so, and Lock.Epoch
	// is 0. A lock that another holds is refused all the same.
	Optional bool
	// Off takes no lock at all, for a program that runs once. Everything else works as if it was held.
	Off bool
	// Metrics counts what becomes of locks. One may serve many locks. Defaults to none.
	Metrics *LockMetrics
}

// Lock is a lock that this process holds, or held. It is renewed until it is released or lost, or until the context
// given to Acquire ends.
type Lock struct {
	kv     driver.KV
	bucket string
	name   string
	o      LockOptions
	token  string // of this holding, among the data of the lock

	ctx   context.Context
	end   context.CancelCauseFunc
	lease *leasekeeper.Lease // nil: nothing was taken
	ended chan struct{}      // closed when ctx has ended and nothing renews the lock any more

	acquired time.Time
	since    time.Time // when it was acquired, by the backend's clock
	epoch    uint64

	mu       sync.Mutex
	revision uint64
	lost     error
	released bool
}

// Context returns a context for what is done under the lock. It ends when the lock is released or lost, in time before
// another can have it, or when the context given to Acquire ends; context.Cause tells which. Lost is
// ferry.ErrLeaseLost.
func (l *Lock) Context() context.Context { return l.ctx }

// Epoch is the number of this holding. Each is larger than all before. Zero: the lock is off, or was optional and could
// not be taken.
func (l *Lock) Epoch() uint64 { return l.epoch }

// Fence has a write of the lock's bucket refused with ErrLeaseLost once the lock is not held under this epoch any more.
// Nil where Epoch is 0.
func (l *Lock) Fence() *driver.Fence {
	if l.epoch == 0 {
		return nil
	}
	return &driver.Fence{Name: l.name, Epoch: l.epoch}
}

// Err says why the lock is not held, or nil. It asks the clock, not the broker.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case l.released:
		return driver.NewError(ferry.ErrLeaseLost, fmt.Sprintf("lock %q was released", l.name), "acquire it again", nil)
	case l.lease != nil && l.lease.Err() != nil:
		return l.timedOut()
	}
	return nil
}

// Release gives the lock up at once, so that whoever waits has it. It returns ErrLeaseLost if it was lost before. The
// second Release does nothing.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	lost, again := l.lost, l.released
	l.released = true
	l.mu.Unlock()
	l.end(errReleased)
	if l.lease == nil {
		return nil
	}
	<-l.ended
	if again {
		return nil
	}
	held := time.Since(l.acquired)
	if lost != nil {
		return lost
	}
	err := l.give(ctx)
	l.o.Metrics.released(held)
	return err
}

// give deletes the lock, if it is still ours. A deletion that a fail-over forgets does no harm, so it waits for no
// level.
func (l *Lock) give(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.o.TTL) // by then it has ended by itself
	defer cancel()
	l.mu.Lock()
	revision := l.revision
	l.mu.Unlock()
	w := driver.Write{Name: l.name, Delete: true, If: driver.Condition(revision), Fence: l.Fence(), Request: newToken()}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		r := l.kv.Apply(ctx, l.bucket, driver.KVOptions{}, w)[0]
		switch conflict := errors.Is(r.Err, ferry.ErrConflict); {
		case conflict && l.wrote(r.Value): // a renewal whose answer was lost
			w.If, w.Request = driver.Condition(r.Revision), newToken()
		case conflict:
			return l.notOurs(r.Err)
		case r.Err == nil || permanent(r.Err) || !sleep(ctx, pause):
			return r.Err
		}
	}
}

// notOurs is the error of a lock in whose place something else is found, or nothing.
func (l *Lock) notOurs(cause error) error {
	return driver.NewError(ferry.ErrLeaseLost, fmt.Sprintf("lock %q is not held any more", l.name),
		"it ended, or was deleted or overwritten: a process that is paused for longer than the TTL loses it", cause)
}

func (l *Lock) timedOut() error {
	return driver.NewError(ferry.ErrLeaseLost, fmt.Sprintf("lock %q was not renewed in time", l.name),
		"see whether the broker is reachable; a process that is paused for longer than the TTL loses it", nil)
}

// lose notes why the lock is not held any more, and reports whether that is news. The first reason stands.
func (l *Lock) lose(why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil || l.released {
		return false
	}
	l.lost = why
	l.o.Metrics.expired()
	return true
}
