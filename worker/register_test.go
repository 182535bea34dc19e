package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

func nothing(context.Context, *ferry.Delivery) error { return nil }

func TestRegistrationErrors(t *testing.T) {
	for _, tc := range []struct {
		name     string
		register func(w *worker.Worker)
		want     []string
	}{
		{"no handler", func(*worker.Worker) {}, []string{"no handler"}},
		{"nil handler", func(w *worker.Worker) { worker.HandleRaw(w, topic, nil) }, []string{"handler is nil"}},
		{"nil typed handler", func(w *worker.Worker) { worker.Handle[int](w, topic, nil) }, []string{"handler is nil"}},
		{"nil batch handler", func(w *worker.Worker) { worker.HandleBatch[int](w, topic, nil) }, []string{"handler is nil"}},
		{"bad topic", func(w *worker.Worker) { worker.HandleRaw(w, "a b", nothing) }, []string{`topic name "a b"`}},
		{"topic of Ferry's own", func(w *worker.Worker) {
			worker.HandleRaw(w, "ferry.schedules", nothing)
		}, []string{"one of Ferry's own", "'ferry.'"}},
		{"bad group", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Group(""))
		}, []string{"group name"}},
		{"twice", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing)
			worker.HandleRaw(w, topic, nothing)
		}, []string{"two handlers"}},
		{"numbers", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Concurrency(0), worker.MaxAttempts(0), worker.Timeout(0),
				worker.Lease(-1), worker.MaxRun(0), worker.Weights(1, 0, 1, 1), worker.BatchSize(0), worker.Use(nil),
				worker.Backoff(nil))
		}, []string{"concurrency 0", "max attempts 0", "timeout 0", "lease -1", "max run 0", "weights", "batch of 0",
			"middleware is nil", "back-off is nil"}},
		{"no weights", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Weights(0, 0, 0, 0))
		}, []string{"weights [0 0 0 0]"}},
		{"weights too large", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Weights(1, 4, 16, 10_001))
		}, []string{"weights", "10000"}},
		{"batch of single messages", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.BatchSize(5))
		}, []string{"options of a batch", "HandleBatch"}},
		{"wait of single messages", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.BatchWait(time.Second))
		}, []string{"options of a batch"}},
		{"weights that are ignored", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.StrictPriority(), worker.Weights(1, 2, 3, 4))
		}, []string{"strict priority ignores weights"}},
		{"two groups", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Group("a"), worker.Group("b"))
		}, []string{`the groups ["a" "b"]`}},
		{"no delays", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Retry(ferry.Delays()))
		}, []string{"the delays are none", `topic "` + topic}},
		{"a limit below the base", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Retry(ferry.Exponential(time.Minute, time.Second)))
		}, []string{"first wait 1m0s is longer"}},
		{"a negative wait", func(w *worker.Worker) {
			worker.HandleRaw(w, topic, nothing, worker.Retry(ferry.RetryPolicy{Base: -1}))
		}, []string{"a time is negative"}},
		{"all together", func(w *worker.Worker) {
			worker.HandleRaw(w, "", nothing)
			worker.HandleRaw(w, topic, nil)
			w.Use(nil)
		}, []string{"topic name", "handler is nil", "middleware of the worker is nil"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				w := worker.New(r.broker, worker.Options{})
				tc.register(w)
				err := w.Check()
				if !errors.Is(err, ferry.ErrInvalid) {
					t.Fatalf("Check returned %v", err)
				}
				if again := w.Run(context.Background()); again == nil || again.Error() != err.Error() {
					t.Errorf("Run returned %v, Check %v", again, err)
				}
				for _, want := range append(tc.want, "hint:") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not mention %q", err, want)
					}
				}
				if d.count("subscribe") != 0 {
					t.Error("something was started")
				}
			})
		})
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]worker.Options{
		"concurrency":    {Concurrency: -1},
		"lease":          {Lease: -1},
		"stop timeout":   {StopTimeout: -1},
		"max attempts":   {MaxAttempts: -1},
		"max deliveries": {MaxDeliveries: 2},
		"retry":          {Retry: ferry.Delays()},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				w := worker.New(r.broker, o)
				worker.HandleRaw(w, topic, nothing)
				err := w.Run(context.Background())
				if !errors.Is(err, ferry.ErrInvalid) {
					t.Errorf("Run returned %v", err)
				}
				if err != nil && strings.Contains(err.Error(), "handler of topic") {
					t.Errorf("the handler is blamed for it, too: %v", err)
				}
			})
		})
	}
}

// What the broker cannot give, whatever it holds, is known before anything runs.
func TestWhatTheBrokerCannotGive(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing, worker.Lease(time.Millisecond))
		err := w.Check()
		if !errors.Is(err, ferry.ErrUnsupported) || !strings.Contains(err.Error(), "a lease of 1ms") ||
			!strings.Contains(err.Error(), "topic \""+topic) {
			t.Errorf("Check returned %v", err)
		}
		if again := w.Run(context.Background()); again == nil || again.Error() != err.Error() || d.count("subscribe") != 0 {
			t.Errorf("Run returned %v, Check %v", again, err)
		}
	})
}

func TestNilWorkerAndBroker(t *testing.T) {
	t.Parallel()
	var w *worker.Worker
	worker.HandleRaw(w, topic, nothing)
	w.Use(nil)
	if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("nil worker: %v", err)
	}
	w = worker.New(nil, worker.Options{})
	worker.HandleRaw(w, topic, nothing)
	if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("nil broker: %v", err)
	}
}

// Run without a context panics in its caller, and has not begun.
func TestRunWithoutAContext(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Run does not panic")
				}
			}()
			_ = w.Run(nil) //nolint:staticcheck // on purpose
		}()
		mustStop(t, start(t, w))
	})
}

func TestRunOnce(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing)
		stop := start(t, w)
		pause(0)
		if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("beside another: %v", err)
		}
		mustStop(t, stop)
		if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("again: %v", err)
		}
	})
}

func TestRunWithAnEndedContext(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := w.Run(ctx); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}
