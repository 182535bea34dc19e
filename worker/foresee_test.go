package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// What middleware is told is what becomes of the message, for every way in which a handler can end.
func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		opts []worker.HandlerOption
		want ferry.Outcome
	}{
		{"success", nil, nil, ferry.OutcomeAck},
		{"error", errBilling, nil, ferry.OutcomeRetry},
		{"last attempt", errBilling, []worker.HandlerOption{worker.MaxAttempts(1)}, ferry.OutcomeDead},
		{"policy at its end", errBilling,
			[]worker.HandlerOption{worker.Retry(ferry.RetryPolicy{Base: time.Hour, MaxElapsed: time.Second})},
			ferry.OutcomeDead},
		{"own back-off", errBilling, []worker.HandlerOption{worker.Backoff(func(int, error) time.Duration {
			return time.Hour
		})}, ferry.OutcomeRetry},
		{"fatal", worker.Fatal(errBilling), nil, ferry.OutcomeDead},
		{"drop", worker.Drop(nil), nil, ferry.OutcomeDrop},
		{"park", worker.Park(time.Hour), nil, ferry.OutcomeRelease},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var told ferry.Outcome
				var ok bool
				r.handle(t, func(context.Context) error { return c.err }, &told, &ok, c.opts...)
				g := r.group(topic)
				became := map[ferry.Outcome]bool{ferry.OutcomeAck: g.Acked == 1, ferry.OutcomeRetry: g.Waiting == 1,
					ferry.OutcomeDead: g.Dead == 1,
					ferry.OutcomeDrop: g.Dropped == 1, ferry.OutcomeRelease: g.Waiting == 1}
				if !ok || told != c.want || !became[c.want] {
					t.Errorf("told %v (%t), want %v; %+v", told, ok, c.want, g)
				}
			})
		})
	}
}

// handle runs one message through a handler whose middleware asks.
func (r *rig) handle(t *testing.T, h func(context.Context) error, told *ferry.Outcome, ok *bool,
	opts ...worker.HandlerOption) {
	t.Helper()
	w := worker.New(r.broker, worker.Options{})
	w.Use(func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			err := next(ctx, d)
			*told, *ok = worker.OutcomeOf(ctx, err)
			return err
		}
	})
	worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error { return h(ctx) },
		append([]worker.HandlerOption{worker.Retry(ferry.Delays(time.Hour))}, opts...)...)
	r.publish(topic, []string{"x"})
	stop := start(t, w)
	pause(30 * time.Second)
	mustStop(t, stop)
}

// A handler that was given up, and a context of nobody, decide about nothing.
func TestOutcomeOfNobody(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var told ferry.Outcome
		ok := true
		r.handle(t, func(context.Context) error {
			time.Sleep(10 * time.Second) // longer than its timeout and the grace
			return nil
		}, &told, &ok, worker.Timeout(time.Second), worker.MaxAttempts(1))
		if ok {
			t.Errorf("a handler that was given up is told %v", told)
		}
		if _, ok := worker.OutcomeOf(context.Background(), nil); ok {
			t.Error("a context of nobody")
		}
	})
}
