package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// rest makes the handlers of the test's topic quiet, and waits until nothing more is claimed.
func rest(t *testing.T, w *worker.Worker, on bool) {
	t.Helper()
	if err := w.Quiet(topic, driver.DefaultGroup, on); err != nil {
		t.Fatal(err)
	}
	pause(200 * time.Millisecond)
}

// A quiet worker finishes what runs, however long that takes, gives the rest back and claims nothing, until it is told
// to go on.
func TestQuiet(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 1, Lease: 5 * time.Second})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s", body(d))
			time.Sleep(20 * time.Second) // four leases
			return nil
		})
		r.publish(topic, numbered(3))
		stop := start(t, w)
		pause(100 * time.Millisecond)
		rest(t, w, true)
		if g := r.group(topic); g.Inflight != 1 || g.Ready != 2 || !w.Stats().Consumers[0].Quiet {
			t.Errorf("quiet: %+v", g)
		}
		r.publish(topic, []string{"3"})
		pause(time.Minute)
		if g := r.group(topic); g.Acked != 1 || g.Inflight != 0 || g.Ready != 3 || g.Redelivered != 0 || g.Consumers != 1 {
			t.Errorf("a minute later: %+v", g)
		}
		rest(t, w, false)
		pause(2 * time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), numbered(4))
	})
}

// What a quiet worker gave back is run by others, and a key goes on in order, after what the quiet one still ran of it.
func TestQuietKeepsOrder(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		t.Run(fmt.Sprint("relaxed ", relaxed), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var log journal
				newWorker := func(name string) *worker.Worker {
					w := worker.New(r.broker, worker.Options{Concurrency: 4})
					var opts []worker.HandlerOption
					if relaxed {
						opts = append(opts, worker.Relaxed())
					}
					worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
						log.add("%s %s", name, body(d))
						time.Sleep(time.Second)
						return nil
					}, opts...)
					return w
				}
				first, second := newWorker("first"), newWorker("second")
				r.keyed(topic, "k", 4)
				stopFirst := start(t, first)
				pause(500 * time.Millisecond)
				if err := first.Quiet("", "", true); err != nil {
					t.Fatal(err)
				}
				stopSecond := start(t, second)
				pause(10 * time.Second)
				mustStop(t, stopFirst)
				mustStop(t, stopSecond)
				equal(t, log.all(), []string{"first k:0", "second k:1", "second k:2", "second k:3"})
			})
		})
	}
}

// A retry that falls due while its worker is quiet waits, and its followers with it.
func TestQuietWithRetries(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 2, Retry: ferry.Delays(time.Second)})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s %d", body(d), d.Attempt)
			time.Sleep(time.Second)
			if d.Attempt == 1 && body(d) == "k:0" {
				return errors.New("fails once")
			}
			return nil
		})
		r.keyed(topic, "k", 2)
		stop := start(t, w)
		pause(500 * time.Millisecond)
		rest(t, w, true)
		pause(time.Minute)
		equal(t, log.all(), []string{"k:0 1"})
		if g := r.group(topic); g.Ready != 2 || g.Inflight != 0 {
			t.Errorf("quiet: %+v", g)
		}
		rest(t, w, false)
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"k:0 1", "k:0 2", "k:1 1"})
	})
}

// A batch that waits to be filled goes back, and one that runs finishes.
func TestQuietWithBatches(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		w := worker.New(r.broker, worker.Options{Concurrency: 2})
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			log.add("%d", len(ms))
			return nil
		}, worker.BatchSize(10), worker.BatchWait(500*time.Millisecond))
		r.publish(topic, numbered(3))
		stop := start(t, w)
		pause(100 * time.Millisecond)
		rest(t, w, true)
		if g := r.group(topic); g.Ready != 3 || g.Inflight != 0 {
			t.Errorf("quiet: %+v", g)
		}
		pause(10 * time.Second)
		equal(t, log.all(), nil)
		rest(t, w, false)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, log.all(), []string{"3"})
	})
}

// A quiet worker stops like any other: its handlers finish first. One that was quiet before Run claims nothing.
func TestQuietAndStop(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var runs atomic.Int64
		handler := func(context.Context, *ferry.Delivery) error { runs.Add(1); time.Sleep(3 * time.Second); return nil }
		r.publish(topic, numbered(2))
		early := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(early, topic, handler)
		rest(t, early, true)
		stop := start(t, early)
		pause(time.Minute)
		mustStop(t, stop)
		if runs.Load() != 0 {
			t.Errorf("%d started in a worker that was quiet from the start", runs.Load())
		}
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, handler)
		stop = start(t, w)
		pause(time.Second)
		rest(t, w, true)
		begin := time.Now()
		mustStop(t, stop)
		if took := time.Since(begin); took != 1800*time.Millisecond {
			t.Errorf("stopped after %v", took)
		}
		if g := r.group(topic); g.Acked != 1 || g.Ready != 1 || g.Inflight != 0 || g.Consumers != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// The backlog of a quiet handler makes a worker no larger, and its share of the slots goes to the others.
func TestQuietAndScaling(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var g gauge
		w := worker.New(r.broker, worker.Options{Scaling: worker.Scaling{Min: 1, Max: 10}})
		worker.HandleRaw(w, topic, g.sleeper(100*time.Millisecond))
		worker.HandleRaw(w, "calm", g.sleeper(10*time.Second))
		r.publish("calm", numbered(1))
		stop := start(t, w)
		synctest.Wait()
		rest(t, w, true)
		r.publish(topic, numbered(1000))
		pause(5 * time.Second)
		if n := w.Stats().Concurrency; n != 1 {
			t.Errorf("%d handlers for the backlog of a quiet one", n)
		}
		rest(t, w, false)
		pause(5 * time.Second)
		if n := w.Stats().Concurrency; n != 10 {
			t.Errorf("%d handlers for a deep queue", n)
		}
		mustStop(t, stop)
	})
}

// While Begin is asked for, a message has not started: made quiet meanwhile, it goes back.
func TestQuietWhileStarting(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		r.publish(topic, numbered(1))
		loseAll(r)
		d.set(func() { d.begin = func() error { time.Sleep(time.Second); return nil } })
		var runs atomic.Int64
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { runs.Add(1); return nil })
		stop := start(t, w)
		for d.count("begin") == 0 {
			pause(100 * time.Millisecond)
		}
		rest(t, w, true)
		pause(10 * time.Second)
		if g := r.group(topic); runs.Load() != 0 || g.Ready != 1 {
			t.Errorf("%d started, %+v", runs.Load(), g)
		}
		rest(t, w, false)
		pause(10 * time.Second)
		mustStop(t, stop)
		if runs.Load() != 1 {
			t.Errorf("%d started after it went on", runs.Load())
		}
	})
}

func TestQuietOfNoHandler(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		for _, err := range []error{w.Quiet("other", "", true), w.Quiet(topic, "other", true),
			(*worker.Worker)(nil).Quiet("", "", true)} {
			if !errors.Is(err, ferry.ErrNotFound) && !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("Quiet: %v", err)
			}
		}
		r.publish(topic, numbered(1))
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 {
			t.Errorf("%+v", g)
		}
	})
}
