package redis_test

import (
	"context"
	"regexp"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// The whole suite passes when every script runs twice and only the second answer is seen: so a client library that
// repeats a request because the answer was lost does no harm.
func TestEveryScriptCanBeRepeated(t *testing.T) {
	addr := redistest.Shared(t).Addr()
	twice := hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		if err := next(ctx, cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}}
	h := harness("", capabilities(driver.InMemory, driver.InMemory))
	h.Open = func(testing.TB) driver.Driver { return openWith(t, addr, namespace(), twice) }
	h.Reopen = func(_ testing.TB, d driver.Driver) driver.Driver {
		if err := d.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		return openWith(t, addr, d.(*redis.Driver).Prefix(), twice)
	}
	h.Beside = func(_ testing.TB, d driver.Driver) driver.Driver {
		return openWith(t, addr, d.(*redis.Driver).Prefix(), twice)
	}
	h.Steps = 2000
	h.Except = regexp.MustCompile("^kv/") // a write of a named value is sent once, and repeated under its Request alone
	drivertest.Run(t, h)
}

// A server that forgets its scripts all the time is sent them again, whatever the call.
func TestScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d := open(t, server.URL(), namespace())
	closing(t, d)
	ctx, stop := context.WithCancel(t.Context())
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for ctx.Err() == nil {
			if _, err := server.Command("SCRIPT", "FLUSH"); err != nil {
				t.Errorf("SCRIPT FLUSH: %v", err)
				return
			}
		}
	}()
	s := subscribe(t, d, "jobs")
	for range 100 {
		publish(t, d, "jobs", "a", "b", "c")
		drain(t, s, 3)
	}
	stop()
	<-flushed
	if st, err := d.Stats(t.Context(), "jobs"); err != nil || st.Groups[0].Acked != 300 || st.Messages != 0 {
		t.Errorf("Stats %+v, %v; want 300 acked and nothing left", st, err)
	}
}

// A claim whose answer is lost is not stranded until its lease ends: the next Receive returns it, Close releases it.
func TestLostClaimIsFound(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"receive", "close"} {
		var lose atomic.Bool
		lossy := hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			err := next(ctx, cmd)
			if isScript(cmd) && len(cmd.Args()) > 3 && lose.Load() && err == nil {
				cmd.SetErr(context.DeadlineExceeded)
				return context.DeadlineExceeded
			}
			return err
		}}
		d := openWith(t, redistest.Shared(t).Addr(), namespace(), lossy)
		s := subscribe(t, d, "jobs")
		publish(t, d, "jobs", "a")
		lose.Store(true)
		if ds, err := s.Receive(t.Context(), 1); err == nil {
			t.Fatalf("Receive returned %v although its answer was lost", ds)
		}
		lose.Store(false)
		if how == "close" {
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = subscribe(t, d, "jobs")
		}
		ds, err := s.Receive(t.Context(), 1)
		if err != nil || len(ds) != 1 || ds[0].Deliveries != 1 { // a lease that had ended would count
			t.Errorf("%s: got %v, %v; want the message, uncounted", how, ds, err)
		}
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
