package redis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A stale delivery gains nothing from being extended in one call with the current delivery of the same message, neither
// when the script is repeated nor when its answer is lost: it was once taken for the current one, by the message's
// number alone.
func TestStaleDeliveryIsNotExtendedWithItsSuccessor(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"repeated", "answer lost"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			h := hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
				err := next(ctx, cmd)
				if !isScript(cmd) || !armed.Load() || err != nil {
					return err
				}
				if how == "repeated" {
					return next(ctx, cmd)
				}
				cmd.SetErr(context.DeadlineExceeded)
				return context.DeadlineExceeded
			}}
			d := openWith(t, redistest.Shared(t).Addr(), namespace(), h)
			defer func() { _ = d.Close(context.Background()) }()
			s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			publish(t, d, "jobs", "a", "b")
			stale := take(t, s, 2)
			for _, err := range s.Settle(t.Context(),
				[]driver.Settlement{{Delivery: stale[0], Outcome: driver.Release}, {Delivery: stale[1], Outcome: driver.Release}}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			current := take(t, s, 2) // the same messages, in one new lease, of which half is extended
			armed.Store(true)
			errs := s.Extend(t.Context(), []*driver.Delivery{current[0], stale[0]})
			armed.Store(false)
			if how == "repeated" && (errs[0] != nil || !errors.Is(errs[1], driver.ErrLeaseLost)) {
				t.Errorf("Extend of the current and the stale delivery: %v; want nil and ErrLeaseLost", errs)
			}
			if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: stale[0]}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("the stale delivery was settled: got %v, want ErrLeaseLost", err)
			}
			if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: current[0]}})[0]; err != nil {
				t.Errorf("the current delivery cannot be settled: %v", err)
			}
		})
	}
}

// take receives exactly n deliveries.
func take(t testing.TB, s driver.Subscription, n int) []*driver.Delivery {
	t.Helper()
	ds, err := s.Receive(t.Context(), n)
	if err != nil || len(ds) != n {
		t.Fatalf("Receive: %d deliveries, %v; want %d", len(ds), err, n)
	}
	return ds
}
