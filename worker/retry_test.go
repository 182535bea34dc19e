package worker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// failsUntil returns a handler that fails until it has been called n times, and when it was called.
func failsUntil(n int, err error) (worker.Handler, func() []time.Time) {
	var calls []time.Time
	return func(context.Context, *ferry.Delivery) error {
		if calls = append(calls, time.Now()); len(calls) < n {
			return err
		}
		return nil
	}, func() []time.Time { return calls }
}

func TestBackoffIsAFunction(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		type asked struct {
			attempt int
			err     error
		}
		var questions []asked
		handler, calls := failsUntil(4, errBilling)
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, handler, worker.Backoff(func(attempt int, err error) time.Duration {
			questions = append(questions, asked{attempt, err})
			return time.Duration(attempt-2) * time.Minute // the first is less than zero
		}))
		begin := time.Now()
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Hour)
		mustStop(t, stop)
		if want := []asked{{1, errBilling}, {2, errBilling}, {3, errBilling}}; !slices.Equal(questions, want) {
			t.Errorf("asked %v, want %v", questions, want)
		}
		var waits []time.Duration
		for _, at := range calls() {
			waits = append(waits, at.Sub(begin).Round(time.Second))
		}
		if want := []time.Duration{0, 0, 0, time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("called after %v, want %v", waits, want)
		}
	})
}

// A message that carries a policy follows that.
func TestBackoffGivesWayToTheMessage(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		handler, calls := failsUntil(2, errBilling)
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, handler, worker.Backoff(func(int, error) time.Duration { return time.Hour }))
		r.publish(topic, []string{"x"}, ferry.Retry(ferry.Delays(time.Second)))
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if n := len(calls()); n != 2 {
			t.Errorf("%d calls within a minute, want 2", n)
		}
	})
}

// A function that panics harms nobody: the attempt failed by that, and the policy says when the next one is.
func TestBackoffThatPanics(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		handler, calls := failsUntil(100, errBilling)
		w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Minute), MaxAttempts: 3})
		worker.HandleRaw(w, topic, handler, worker.Backoff(func(int, error) time.Duration { panic("no idea") }))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Hour)
		mustStop(t, stop)
		at := calls()
		if len(at) != 3 || at[1].Sub(at[0]).Round(time.Second) != time.Minute {
			t.Errorf("called at %v, want three times, a minute apart", at)
		}
		if dl := r.dead(topic); dl.Reason != driver.ReasonPanic || !strings.Contains(dl.Error, "no idea") || dl.Stack == "" {
			t.Errorf("the dead letter says %q: %q", dl.Reason, dl.Error)
		}
	})
}

func TestAttemptsCanBeUnlimited(t *testing.T) {
	const tries = 200
	for name, tc := range map[string]struct {
		options worker.Options
		handler []worker.HandlerOption
		message []ferry.PublishOption
	}{
		"for the worker":  {options: worker.Options{MaxAttempts: ferry.Unlimited}},
		"for the handler": {handler: []worker.HandlerOption{worker.MaxAttempts(ferry.Unlimited)}},
		"for the message": {message: []ferry.PublishOption{ferry.MaxAttempts(ferry.Unlimited)}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				handler, calls := failsUntil(tries, errBilling)
				tc.options.Retry = ferry.Delays(time.Second)
				w := worker.New(r.broker, tc.options)
				worker.HandleRaw(w, topic, handler, tc.handler...)
				r.publish(topic, []string{"x"}, tc.message...)
				stop := start(t, w)
				pause(2 * tries * time.Second)
				mustStop(t, stop)
				if g := r.group(topic); len(calls()) != tries || g.Acked != 1 || g.Dead != 0 {
					t.Errorf("%d calls, want %d; %+v", len(calls()), tries, g)
				}
			})
		})
	}
}
