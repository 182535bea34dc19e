package redis_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Close that comes while Drain gives back what a cancelled Receive has claimed does not take it for seen.
func TestCloseCrossesADrain(t *testing.T) {
	t.Parallel()
	const (
		claiming = 1 + iota
		draining
		closing
	)
	var stage atomic.Int32
	cancelled, received, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	closed := make(chan error, 1)
	var s driver.Subscription
	d := openWith(t, redistest.Shared(t).Addr(), namespace(),
		hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			if !isScript(cmd) {
				return next(ctx, cmd)
			}
			switch {
			case stage.Load() == claiming:
				err := next(ctx, cmd)
				if err == nil && stage.CompareAndSwap(claiming, 0) { // the server knows the script, and has carried it out
					close(cancelled)
					<-received
				}
				return err
			case stage.CompareAndSwap(draining, closing):
				go func() { closed <- s.Close(context.Background()) }()
				select {
				case <-left: // it does not wait for us
				case <-time.After(100 * time.Millisecond):
				}
			case stage.CompareAndSwap(closing, 0):
				defer close(left)
			}
			return next(ctx, cmd)
		}})
	defer func() { _ = d.Close(context.Background()) }()
	s = subscribe(t, d, "jobs")
	publish(t, d, "jobs", "a")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-cancelled; cancel() }()
	stage.Store(claiming)
	if ds, err := s.Receive(ctx, 1); err != context.Canceled { //nolint:errorlint // context errors come bare
		t.Fatalf("Receive: %v, %v", ds, err)
	}
	stage.Store(draining)
	close(received)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if x := take(t, subscribe(t, d, "jobs"), 1)[0]; x.Cause != driver.CauseFirst {
		t.Errorf("a message that nobody has seen is delivered with cause %s", x.Cause)
	}
}
