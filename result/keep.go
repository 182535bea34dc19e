package result

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Options of Keep. The zero value is a good one.
type Options struct {
	// TTL is how long a result is kept from its last change. Defaults to one hour, and is at least a second. A result
	// whose handler runs longer than that between two calls of Progress has no status meanwhile.
	TTL time.Duration
}

const defaultTTL = time.Hour

// Keep returns middleware that keeps what becomes of the messages of a handler: what it returns, how far it is, and how
// it failed. Each message costs one write to the broker, each failed attempt two. Where that write fails the message is
// handled all the same, and the log says so; only Return tells its handler.
func Keep(b *ferry.Broker, o Options) (worker.Middleware, error) {
	k, err := newKeeper(b, o)
	if err != nil {
		return nil, err
	}
	return k.wrap, nil
}

func newKeeper(b *ferry.Broker, o Options) (*keeper, error) {
	switch {
	case b == nil:
		return nil, errNilBroker
	case o.TTL != 0 && o.TTL < driver.MinValueTTL:
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("results cannot be kept for %v", o.TTL),
			"use a second or more, or leave it zero for an hour", nil)
	case o.TTL == 0:
		o.TTL = defaultTTL
	}
	return &keeper{broker: b, ttl: o.TTL}, nil
}

// keeper keeps the results of handlers.
type keeper struct {
	broker *ferry.Broker
	ttl    time.Duration
	told   atomic.Int64 // when the log was told of a result that is not kept, in nanoseconds
}

// recordKey is the key under which a handler's context holds its record.
type recordKey struct{}

func (k *keeper) wrap(next worker.Handler) worker.Handler {
	return func(ctx context.Context, d *ferry.Delivery) error {
		if ctx.Value(recordKey{}) != nil { // kept already: it was given to the worker and to the handler
			return next(ctx, d)
		}
		r := newRecord(k, d)
		r.begun(ctx)
		returned := false
		defer func() {
			if returned {
				return
			}
			p := recover() // nil: runtime.Goexit, which goes on by itself
			r.ended(ctx, crashed(p))
			if p != nil {
				panic(p)
			}
		}()
		err := next(context.WithValue(ctx, recordKey{}, r), d)
		returned = true
		r.ended(ctx, err)
		return err
	}
}

// crashed is how an attempt failed that did not return.
func crashed(p any) error {
	switch p := p.(type) {
	case nil:
		return errors.New("the handler ended its goroutine (runtime.Goexit)")
	case error:
		return fmt.Errorf("panic: %w", p)
	}
	return fmt.Errorf("panic: %v", p)
}

// notKept tells the log, at most once a second.
func (k *keeper) notKept(ctx context.Context, d *ferry.Delivery, err error) {
	now := time.Now().UnixNano()
	if last := k.told.Load(); now-last < int64(time.Second) && last != 0 || !k.told.CompareAndSwap(last, now) {
		return
	}
	k.broker.Logger().WarnContext(ctx, "a result is not kept", "topic", d.Topic, "group", d.Group, "id", d.ID,
		"error", err)
}
