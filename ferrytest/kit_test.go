package ferrytest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/internal/stall"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(m)
}

type Order struct {
	ID int `json:"id"`
}

// newBilling is a worker as a user might write it: it bills orders, and sends a mail for each.
func newBilling(b *ferry.Broker) *worker.Worker {
	w := worker.New(b, worker.Options{Concurrency: 4})
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[Order]) error {
		if m.Value.ID%10 == 0 {
			return errors.New("timeout to billing")
		}
		return worker.Emit(ctx, "mails", fmt.Sprintf("order %d is billed", m.Value.ID))
	}, worker.MaxAttempts(3), worker.Retry(ferry.Delays(time.Minute)))
	return w
}

func TestDelayedWorkTakesNoTime(t *testing.T) {
	machine, real := stall.Watch(t), time.Now()
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		k.Start(newBilling(k.Broker))
		publish(t, k, Order{ID: 1}, ferry.Delay(24*time.Hour))
		k.Advance(24*time.Hour - time.Millisecond)
		k.ExpectAcked("orders", 0)
		k.Advance(time.Millisecond)
		k.ExpectAcked("orders", 1)
	})
	if machine.Elapsed(real) > time.Minute {
		t.Error("a virtual day took more than a real minute")
	}
}

func TestFailuresRetriesAndFollowUps(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		k.Start(newBilling(k.Broker))
		for id := 1; id <= 10; id++ {
			publish(t, k, Order{ID: id})
		}
		start := time.Now()
		k.Advance(2 * time.Minute)
		k.ExpectAcked("orders", 9)
		k.ExpectRetried("orders", 2)
		dead := k.ExpectDead("orders", "max_attempts", 1)
		if len(dead) == 1 && (dead[0].Error != "timeout to billing" || dead[0].Attempts != 3) {
			t.Errorf("dead letter %+v", dead[0])
		}
		if got := time.Since(start); got != 2*time.Minute {
			t.Errorf("two retries a minute apart took %v", got)
		}
		if mails := k.ExpectPublished("mails", 9); len(mails) == 9 && string(mails[0].Body) == "" {
			t.Errorf("mail %+v has no body", mails[0])
		}
	})
}

// The next tick of a schedule is always to come: Drain does not wait for it.
func TestDrainWithASchedule(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		s, err := schedule.New(k.Broker, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ferry.NewMessage(t.Context(), k.Broker, "orders", Order{ID: 1})
		if err == nil {
			err = s.Put(t.Context(), schedule.Schedule{Name: "nightly", Spec: "0 3 * * *", Message: m})
		}
		if err != nil {
			t.Fatal(err)
		}
		k.Start(s)
		w := worker.New(k.Broker, worker.Options{})
		worker.Handle(w, "orders", func(context.Context, *ferry.Msg[Order]) error { return nil })
		k.Start(w)
		k.Advance(72 * time.Hour)
		k.Drain()
		k.ExpectPublished("orders", 3)
		k.ExpectAcked("orders", 3)
	})
}

func TestFailPublish(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		down := fmt.Errorf("the broker is away: %w", ferry.ErrNotApplied)
		k.FailPublish(2, down)
		for i, want := range []error{nil, down, nil} {
			if _, err := ferry.Publish(t.Context(), k.Broker, "orders", Order{ID: i}); !errors.Is(err, want) {
				t.Errorf("publish %d: error %v, want %v", i+1, err, want)
			}
		}
		k.ExpectPublished("orders", 2)
	})
}

func TestFailSettleIsRetriedOrRedelivered(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		k.Start(newBilling(k.Broker))
		k.FailSettle(1, fmt.Errorf("cut off: %w", ferry.ErrNotApplied))
		publish(t, k, Order{ID: 1})
		k.Advance(time.Minute)
		k.ExpectAcked("orders", 1)
		k.ExpectPublished("mails", 1)
	})
}

func publish(t *testing.T, k *ferrytest.Kit, o Order, opts ...ferry.PublishOption) {
	t.Helper()
	if _, err := ferry.Publish(t.Context(), k.Broker, "orders", o, opts...); err != nil {
		t.Fatal(err)
	}
}

// goTest runs a test within an example, as go test does, and silently: with -v it would print among the example's
// output.
func goTest(name string, test func(*testing.T)) {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	_ = verbose.Set("false")
	defer func() { _ = verbose.Set(was) }()
	everything := func(string, string) (bool, error) { return true, nil }
	testing.RunTests(everything, []testing.InternalTest{{Name: name, F: test}})
}
