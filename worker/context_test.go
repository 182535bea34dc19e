package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

type valueKey struct{}

// inHandler runs f in a handler, and then after with the context f got.
func inHandler(t *testing.T, f, after func(t *testing.T, ctx context.Context), opts ...worker.HandlerOption) {
	t.Helper()
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		var kept context.Context
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			kept = ctx
			f(t, ctx)
			return nil
		}, opts...)
		r.publish(topic, []string{"x"})
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), valueKey{}, "value"))
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		pause(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if after != nil {
			after(t, kept)
		}
	})
}

func TestContextIsAlive(t *testing.T) {
	inHandler(t, func(t *testing.T, ctx context.Context) {
		if _, ok := ctx.Deadline(); ok || ctx.Err() != nil || context.Cause(ctx) != nil {
			t.Error("it has ended")
		}
		if ctx.Value(valueKey{}) != "value" {
			t.Error("the values of Run's context are missing")
		}
		if s := fmt.Sprint(ctx); s != "ferry handler context" {
			t.Errorf("printed as %q", s)
		}
	}, nil)
}

func TestContextEndsWithTheHandler(t *testing.T) {
	var child context.Context
	inHandler(t, func(_ *testing.T, ctx context.Context) {
		c, cancel := context.WithCancel(ctx)
		context.AfterFunc(c, cancel)
		child = c
	}, func(t *testing.T, ctx context.Context) {
		for _, c := range []context.Context{ctx, child} {
			if !errors.Is(c.Err(), context.Canceled) || context.Cause(c) == nil {
				t.Errorf("%v outlives its handler", c)
			}
		}
	})
}

// A context that nobody asked for while the handler ran has ended all the same.
func TestUnusedContextEndsWithTheHandler(t *testing.T) {
	inHandler(t, func(*testing.T, context.Context) {}, func(t *testing.T, ctx context.Context) {
		select {
		case <-ctx.Done():
		default:
			t.Error("it outlives its handler")
		}
		if !errors.Is(ctx.Err(), context.Canceled) || ctx.Value(valueKey{}) != "value" {
			t.Errorf("%v, %v", ctx.Err(), ctx.Value(valueKey{}))
		}
	})
}

func TestContextDeadline(t *testing.T) {
	inHandler(t, func(t *testing.T, ctx context.Context) {
		at, ok := ctx.Deadline()
		if !ok || time.Until(at) != 5*time.Second {
			t.Errorf("deadline in %v, %v", time.Until(at), ok)
		}
		c, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-c.Done()
		if !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(c), worker.ErrTimeout) {
			t.Errorf("child ended with %v, %v", c.Err(), context.Cause(c))
		}
	}, nil, worker.Timeout(5*time.Second))
}

func TestContextAskedForAfterItsTimeout(t *testing.T) {
	inHandler(t, func(t *testing.T, ctx context.Context) {
		time.Sleep(5500 * time.Millisecond)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), worker.ErrTimeout) {
			t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
		}
	}, nil, worker.Timeout(5*time.Second))
}
