package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// cancel cancels the message with a body that is also its id.
func cancel(t *testing.T, w *worker.Worker, id string, want bool) {
	t.Helper()
	if got := w.Cancel(topic, driver.DefaultGroup, id); got != want {
		t.Errorf("Cancel of %s: %v, want %v", id, got, want)
	}
}

// named publishes messages whose id is their body.
func (r *rig) named(bodies []string, opts ...ferry.PublishOption) {
	r.t.Helper()
	for _, b := range bodies {
		r.publish(topic, []string{b}, append(opts, ferry.ID(b))...)
	}
}

// A cancelled handler learns of it by its context. Whatever error it returns, the message is dropped and comes no more;
// if it succeeds all the same it is acknowledged.
func TestCancelRunning(t *testing.T) {
	returns := map[string]func(ctx context.Context) error{
		"its context's error": func(ctx context.Context) error { return ctx.Err() },
		"a retry":             func(context.Context) error { return worker.RetryAfter(errors.New("later"), time.Second) },
		"dead":                func(context.Context) error { return worker.Dead("broken", nil) },
		"parked":              func(context.Context) error { return worker.Park(time.Second) },
		"a panic":             func(context.Context) error { panic("cancelled") },
		"success":             func(context.Context) error { return nil },
	}
	for name, end := range returns {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var cause error
				runs := 0
				w := worker.New(r.broker, worker.Options{Concurrency: 2})
				worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
					runs++
					<-ctx.Done()
					cause = context.Cause(ctx)
					return end(ctx)
				})
				r.named([]string{"a"})
				stop := start(t, w)
				pause(time.Second)
				cancel(t, w, "a", true)
				pause(time.Minute)
				cancel(t, w, "a", false)
				mustStop(t, stop)
				g := r.group(topic)
				acked, dropped := uint64(0), uint64(1)
				if name == "success" {
					acked, dropped = 1, 0
				}
				if runs != 1 || !errors.Is(cause, worker.ErrCancelled) || !errors.Is(cause, context.Canceled) || g.Acked != acked ||
					g.Dropped != dropped || g.Dead != 0 || g.Waiting != 0 {
					t.Errorf("%d runs, cause %v, %+v", runs, cause, g)
				}
			})
		})
	}
}

// A handler that ignores its context does not keep the message alive: it is dropped a second later, and its key goes
// on.
func TestCancelOfAHandlerThatGoesOn(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 2})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s", body(d))
			if body(d) == "deaf" {
				time.Sleep(time.Minute)
				return errors.New("too late")
			}
			return nil
		}, worker.Timeout(30*time.Second))
		r.named([]string{"deaf", "next"}, ferry.Key("k"))
		stop := start(t, w)
		pause(time.Second)
		cancel(t, w, "deaf", true)
		pause(1100 * time.Millisecond)
		if g := r.group(topic); g.Dropped != 1 || g.Acked != 1 {
			t.Errorf("a second after: %+v", g)
		}
		pause(2 * time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"deaf", "next"})
	})
}

// What has not started is dropped where it waits: in the queue, first of its key, or behind another of its key.
func TestCancelHeld(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if d.Key == "" && body(d) != "plain" {
				time.Sleep(time.Millisecond)
				return nil
			}
			log.add("%s", body(d))
			time.Sleep(500 * time.Millisecond)
			return nil
		})
		stop := start(t, w)
		r.publish(topic, numbered(40)) // from which it learns to fetch ahead
		pause(time.Second)
		rest(t, w, true)
		r.named([]string{"k:0", "k:1", "k:2"}, ferry.Key("k"))
		r.named([]string{"l:0", "l:1"}, ferry.Key("l"))
		r.named([]string{"plain"})
		rest(t, w, false)
		if n := w.Stats().Consumers[0].Waiting; n != 5 {
			t.Fatalf("%d wait, want 5", n)
		}
		cancel(t, w, "k:1", true)
		cancel(t, w, "k:1", false)
		cancel(t, w, "plain", true)
		cancel(t, w, "l:0", true)
		pause(10 * time.Second)
		mustStop(t, stop)
		equal(t, log.all(), []string{"k:0", "l:1", "k:2"})
		if g := r.group(topic); g.Dropped != 3 || g.Ready != 0 || g.Inflight != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// One member of a batch that is cancelled is not tried again; the batch goes on for the others.
func TestCancelInABatch(t *testing.T) {
	for _, key := range []string{"", "k"} {
		t.Run(fmt.Sprintf("key %q", key), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var log journal
				w := worker.New(r.broker, worker.Options{Concurrency: 1, Retry: ferry.Delays(time.Second)})
				worker.HandleBatch(w, topic, func(ctx context.Context, ms []*ferry.Msg[[]byte]) error {
					names := ""
					for _, m := range ms {
						names += m.ID
					}
					log.add("%s", names)
					time.Sleep(time.Second)
					if ctx.Err() != nil {
						t.Error("the context of the batch has ended")
					}
					if len(ms) == 3 {
						return errors.New("all fail")
					}
					return nil
				}, worker.BatchWait(10*time.Millisecond))
				r.named([]string{"a", "b", "c"}, ferry.Key(key))
				stop := start(t, w)
				pause(500 * time.Millisecond)
				cancel(t, w, "b", true)
				pause(time.Minute)
				mustStop(t, stop)
				equal(t, log.all(), []string{"abc", "ac"})
				if g := r.group(topic); g.Dropped != 1 || g.Acked != 2 || g.Ready+g.Waiting+g.Inflight != 0 {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// While Begin is asked for, a message has not started: cancelled meanwhile it is dropped, alone or in a batch.
func TestCancelWhileStarting(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				r.named([]string{"a", "b"}, ferry.Key("k"))
				loseAll(r)
				d.set(func() { d.begin = func() error { time.Sleep(time.Second); return nil } })
				var log journal
				w := worker.New(r.broker, worker.Options{Concurrency: 1})
				if batch {
					worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
						for _, m := range ms {
							log.add("%s", m.ID)
						}
						return nil
					})
				} else {
					worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error { log.add("%s", d.ID); return nil })
				}
				stop := start(t, w)
				for d.count("begin") == 0 {
					pause(100 * time.Millisecond)
				}
				cancel(t, w, "a", true)
				pause(10 * time.Second)
				mustStop(t, stop)
				equal(t, log.all(), []string{"b"})
				if g := r.group(topic); g.Dropped != 1 || g.Acked != 1 {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// A message that waits for its turn because it may have killed a process is dropped where it waits, and its key goes
// on.
func TestCancelOfASuspect(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, 3, "first", ferry.ID("first"))
		suspect(r, 3, "second", ferry.ID("second"), ferry.Key("k"))
		r.publish(topic, []string{"behind"}, ferry.Key("k"))
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s", body(d))
			if body(d) == "first" {
				time.Sleep(time.Second)
			}
			return nil
		})
		stop := start(t, w)
		pause(100 * time.Millisecond)
		waiting := "second"
		if log.all()[0] == "second" {
			waiting = "first"
		}
		cancel(t, w, waiting, true)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Dropped != 1 || g.Acked != 2 || g.Ready+g.Waiting+g.Inflight != 0 {
			t.Errorf("%v, %+v", log.all(), g)
		}
	})
}

// A message that was cancelled is dropped by a stop too, not given back.
func TestCancelAndStop(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1, StopTimeout: 100 * time.Millisecond})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(time.Hour); return nil })
		r.named([]string{"a"})
		stop := start(t, w)
		pause(time.Second)
		cancel(t, w, "a", true)
		if err := stop(); !errors.Is(err, worker.ErrAbandoned) {
			t.Errorf("Run returned %v", err)
		}
		if g := r.group(topic); g.Dropped != 1 || g.Ready != 0 {
			t.Errorf("%+v", g)
		}
		time.Sleep(time.Hour)
	})
}

// What waits for a retry, and what this worker never had, is not its to cancel.
func TestCancelOfWhatIsNotHeld(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Minute)})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return errors.New("again") })
		cancel(t, w, "a", false)
		r.named([]string{"a"})
		stop := start(t, w)
		pause(time.Second)
		cancel(t, w, "a", false)
		cancel(t, w, "b", false)
		if w.Cancel("other", driver.DefaultGroup, "a") || w.Cancel(topic, "other", "a") ||
			(*worker.Worker)(nil).Cancel(topic, "", "a") {
			t.Error("cancelled for another handler")
		}
		mustStop(t, stop)
		if g := r.group(topic); g.Waiting != 1 {
			t.Errorf("%+v", g)
		}
	})
}
