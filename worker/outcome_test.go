package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

var errBilling = errors.New("timeout to billing")

func TestOutcomes(t *testing.T) {
	type want struct {
		ready, waiting, dead int64
		acked, dropped       uint64
		reason               ferry.Reason
		errText              string
	}
	for _, tc := range []struct {
		name    string
		handler func() error
		want    want
	}{
		{"nil acknowledges", func() error { return nil }, want{acked: 1}},
		{"an error is retried", func() error { return errBilling }, want{waiting: 1}},
		{"transient is retried", func() error { return worker.Transient(errBilling) }, want{waiting: 1}},
		{"transient of nil is nil", func() error { return worker.Transient(nil) }, want{acked: 1}},
		{"retry after", func() error { return worker.RetryAfter(errBilling, time.Hour) }, want{waiting: 1}},
		{"fatal", func() error { return worker.Fatal(errBilling) },
			want{dead: 1, reason: driver.ReasonFatal, errText: "timeout to billing"}},
		{"fatal of nil is nil", func() error { return worker.Fatal(nil) }, want{acked: 1}},
		{"fatal, wrapped", func() error { return fmt.Errorf("billing: %w", worker.Fatal(errBilling)) },
			want{dead: 1, reason: driver.ReasonFatal, errText: "billing: timeout to billing"}},
		{"dead", func() error { return worker.Dead("no_such_customer", errBilling) },
			want{dead: 1, reason: "no_such_customer", errText: "timeout to billing"}},
		{"dead without an error", func() error { return worker.Dead(driver.ReasonRejected, nil) },
			want{dead: 1, reason: driver.ReasonRejected, errText: "rejected"}},
		{"the outermost decision counts", func() error { return worker.Dead("mine", worker.Drop(errBilling)) },
			want{dead: 1, reason: "mine", errText: "timeout to billing"}},
		{"drop", func() error { return worker.Drop(errBilling) }, want{dropped: 1}},
		{"drop without an error", func() error { return worker.Drop(nil) }, want{dropped: 1}},
		{"park", func() error { return worker.Park(time.Hour) }, want{waiting: 1}},
		{"panic", func() error { panic("boom") }, want{waiting: 1}},
		{"goexit", func() error { runtime.Goexit(); return nil }, want{waiting: 1}},
		{"an error that panics when asked", func() error { return (*nilError)(nil) }, want{waiting: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Hour)})
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return tc.handler() })
				r.publish(topic, []string{"x"})
				stop := start(t, w)
				pause(time.Minute)
				mustStop(t, stop)
				g := r.group(topic)
				got := want{ready: g.Ready, waiting: g.Waiting, dead: g.Dead, acked: g.Acked, dropped: g.Dropped}
				if g.Dead == 1 {
					got.reason, got.errText = r.dead(topic).Reason, r.dead(topic).Error
				}
				if got != tc.want {
					t.Errorf("got %+v, want %+v", got, tc.want)
				}
				if g.Inflight != 0 {
					t.Errorf("%d still in flight", g.Inflight)
				}
			})
		})
	}
}

// nilError panics when its nil pointer is asked for its text.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestOutcomesUnwrap(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		worker.RetryAfter(errBilling, time.Second), worker.Transient(errBilling), worker.Fatal(errBilling),
		worker.Dead("mine", errBilling), worker.Drop(errBilling),
	} {
		if !errors.Is(err, errBilling) || err.Error() != errBilling.Error() {
			t.Errorf("%#v hides its error", err)
		}
	}
	if !errors.Is(worker.ErrTimeout, context.DeadlineExceeded) {
		t.Error("ErrTimeout is no DeadlineExceeded")
	}
}

func TestAttemptsAndDelaysAreExact(t *testing.T) {
	policy := ferry.Delays(time.Second, 10*time.Second)
	for _, tc := range []struct {
		name    string
		opts    []worker.HandlerOption
		message []ferry.PublishOption
		fail    func(attempt int) error
		want    []time.Duration // when each attempt started
		reason  ferry.Reason
	}{
		{name: "4 attempts are 3 retries", opts: []worker.HandlerOption{worker.MaxAttempts(4), worker.Retry(policy)},
			want: []time.Duration{0, time.Second, 11 * time.Second, 21 * time.Second}, reason: driver.ReasonMaxAttempts},
		{name: "no retry", opts: []worker.HandlerOption{worker.MaxAttempts(1)}, want: []time.Duration{0},
			reason: driver.ReasonMaxAttempts},
		{name: "the message's own limit", opts: []worker.HandlerOption{worker.MaxAttempts(4), worker.Retry(policy)},
			message: []ferry.PublishOption{ferry.MaxAttempts(2)}, want: []time.Duration{0, time.Second},
			reason: driver.ReasonMaxAttempts},
		{name: "the message's own policy", opts: []worker.HandlerOption{worker.MaxAttempts(2), worker.Retry(policy)},
			message: []ferry.PublishOption{ferry.Retry(ferry.Delays(3 * time.Second))},
			want:    []time.Duration{0, 3 * time.Second},
			reason:  driver.ReasonMaxAttempts},
		{name: "max elapsed", opts: []worker.HandlerOption{
			worker.Retry(ferry.RetryPolicy{Delays: []time.Duration{4 * time.Second}, MaxElapsed: 10 * time.Second})},
			want: []time.Duration{0, 4 * time.Second, 8 * time.Second}, reason: driver.ReasonMaxAttempts},
		{name: "retry after counts", opts: []worker.HandlerOption{worker.MaxAttempts(3), worker.Retry(policy)},
			fail: func(int) error { return worker.RetryAfter(errBilling, 7*time.Second) },
			want: []time.Duration{0, 7 * time.Second, 14 * time.Second}, reason: driver.ReasonMaxAttempts},
		{name: "panics", opts: []worker.HandlerOption{worker.MaxAttempts(2), worker.Retry(policy)},
			fail: func(int) error { panic("boom") }, want: []time.Duration{0, time.Second}, reason: driver.ReasonPanic},
		{name: "goexit", opts: []worker.HandlerOption{worker.MaxAttempts(2), worker.Retry(policy)},
			fail: func(int) error { runtime.Goexit(); return nil }, want: []time.Duration{0, time.Second},
			reason: driver.ReasonPanic},
		{name: "parking does not count", opts: []worker.HandlerOption{worker.MaxAttempts(1)},
			fail: func(n int) error {
				if n < 3 {
					return worker.Park(5 * time.Second)
				}
				return errBilling
			}, want: []time.Duration{0, 5 * time.Second, 10 * time.Second}, reason: driver.ReasonMaxAttempts},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				if tc.fail == nil {
					tc.fail = func(int) error { return errBilling }
				}
				w := worker.New(r.broker, worker.Options{Concurrency: 1})
				begin := time.Now()
				var got []time.Duration
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
					got = append(got, time.Since(begin))
					return tc.fail(len(got))
				}, tc.opts...)
				r.publish(topic, []string{"x"}, tc.message...)
				stop := start(t, w)
				pause(time.Hour)
				mustStop(t, stop)
				if !slices.Equal(got, tc.want) {
					t.Errorf("attempts at %v, want %v", got, tc.want)
				}
				if dl := r.dead(topic); dl.Reason != tc.reason {
					t.Errorf("reason %q, want %q", dl.Reason, tc.reason)
				}
			})
		})
	}
}

func TestPanicKeepsItsStack(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { panic(errBilling) }, worker.MaxAttempts(1))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		dl := r.dead(topic)
		if dl.Error != "panic: timeout to billing" || !strings.Contains(dl.Stack, "TestPanicKeepsItsStack") {
			t.Errorf("dead letter %q with stack %q", dl.Error, dl.Stack)
		}
	})
}

func TestInvalidMessageIsDeadAtOnce(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		called := false
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[struct{ ID int }]) error { called = true; return nil })
		m := &ferry.Message{Topic: topic, Body: []byte("{"), ContentType: "application/json"}
		if _, err := r.broker.Publish(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if dl := r.dead(topic); dl.Reason != driver.ReasonInvalidMessage || dl.Attempts != 1 || called {
			t.Errorf("reason %q after %d attempts, handler called: %v", dl.Reason, dl.Attempts, called)
		}
	})
}
