package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
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

// A message that carries a policy follows that, and a function that panics is a failure like any other.
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

func TestStrictPriorityStarvesTheLow(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for range 20 {
			r.publish(topic, []string{"low"}, ferry.Priority(ferry.Low))
		}
		for range 200 {
			r.publish(topic, []string{"high"}, ferry.Priority(ferry.High))
		}
		var got []string
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			got = append(got, string(d.Body))
			return nil
		}, worker.StrictPriority())
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if first := slices.Index(got, "low"); len(got) != 220 || first != 200 {
			t.Errorf("%d handled, the first low one after %d, want 200 high ones before it", len(got), first)
		}
	})
}

func TestStartIsWhereANewGroupBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []worker.HandlerOption
		want int
	}{
		"at the end, by default": {nil, 1},
		"at the beginning":       {[]worker.HandlerOption{worker.Start(ferry.Beginning())}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				if err := r.memory.EnsureTopic(context.Background(), topic, ferry.TopicConfig{Keep: time.Hour}); err != nil {
					t.Fatal(err)
				}
				r.publish(topic, numbered(3))
				handled := 0
				w := worker.New(r.broker, worker.Options{})
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { handled++; return nil },
					append(tc.opts, worker.Group("audit"), worker.Concurrency(1))...)
				stop := start(t, w)
				pause(time.Second)
				r.publish(topic, []string{"later"})
				pause(time.Second)
				mustStop(t, stop)
				if handled != tc.want {
					t.Errorf("handled %d, want %d", handled, tc.want)
				}
			})
		})
	}
}

func TestStartSinceATime(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.memory.EnsureTopic(context.Background(), topic, ferry.TopicConfig{Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		r.publish(topic, numbered(3))
		pause(time.Minute)
		since := time.Now()
		r.publish(topic, []string{"a", "b"})
		var got []string
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error { got = append(got, string(d.Body)); return nil },
			worker.Group("audit"), worker.Start(ferry.Since(since)), worker.Concurrency(1))
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if want := []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
		if st, err := r.memory.Stats(context.Background(), topic); err != nil || len(st.Groups) != 2 || st.Groups[0].Group != "audit" {
			t.Errorf("%+v, %v", st, err)
		}
	})
}
