package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestLongHandlerRunsOnce(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1, Lease: 10 * time.Second})
		runs := 0
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			runs++
			time.Sleep(time.Minute)
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(90 * time.Second)
		mustStop(t, stop)
		if g := r.group(topic); runs != 1 || g.Acked != 1 || g.Redelivered != 0 {
			t.Errorf("%d runs, %+v", runs, g)
		}
		if n := d.count("extend"); n < 15 || n > 20 { // every third of a lease
			t.Errorf("%d calls of Extend in a minute", n)
		}
	})
}

func TestLostLeaseCancelsTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told, settled []error
		d := new(faulty)
		r := newRig(t, func(inner driver.Driver) driver.Driver { d.Driver = inner; return d }, ferry.Hooks{
			LeaseLost: func(_ context.Context, e ferry.Event) { told = append(told, e.Err) },
			Settled:   func(_ context.Context, e ferry.Event) { settled = append(settled, e.Err) },
		})
		w := worker.New(r.broker, worker.Options{Concurrency: 1, Lease: 10 * time.Second})
		var cause error
		begin := time.Now()
		var took time.Duration
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			cause, took = context.Cause(ctx), time.Since(begin)
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		d.set(func() { d.extend = func() error { return ferry.ErrLeaseLost } })
		pause(4 * time.Second)
		if !errors.Is(cause, ferry.ErrLeaseLost) || took > 10*time.Second/3 {
			t.Errorf("cause %v after %v", cause, took)
		}
		if len(told) != 1 || len(settled) != 1 || !errors.Is(settled[0], ferry.ErrLeaseLost) {
			t.Errorf("LeaseLost %v, Settled %v", told, settled)
		}
		if s := w.Stats().Consumers[0]; s.LeasesLost != 1 || s.Refused != 1 {
			t.Errorf("%+v", s)
		}
		mustStop(t, stop)
	})
}

// The backend is away: no answer comes, and the handler must stop before somebody else may have the message.
func TestHandlerStopsBeforeAnUnrenewedLeaseEnds(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1, Lease: 10 * time.Second})
		begin := time.Now()
		var took time.Duration
		var cause error
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			if took == 0 {
				cause, took = context.Cause(ctx), time.Since(begin)
			}
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		d.set(func() { d.extend = func() error { return ferry.ErrUnknown } })
		stop := start(t, w)
		pause(20 * time.Second)
		if took != 9*time.Second || !errors.Is(cause, ferry.ErrLeaseLost) {
			t.Errorf("cancelled after %v with %v", took, cause)
		}
		if n := d.count("extend"); n < 3 || n > 12 {
			t.Errorf("%d calls of Extend", n)
		}
		d.set(func() { d.extend = nil })
		mustStop(t, stop)
		if g := r.group(topic); g.Ready != 1 {
			t.Errorf("not back in its place: %+v", g)
		}
	})
}

func TestWaitingMessagesKeepTheirLease(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Lease: 2 * time.Second})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s %v %d", body(d), d.Cause, d.Deliveries)
			time.Sleep(5 * time.Second)
			return nil
		})
		r.keyed(topic, "k", 3) // one run, held together
		stop := start(t, w)
		pause(time.Second)
		if s := w.Stats().Consumers[0]; s.Waiting != 2 {
			t.Errorf("%d wait behind the first", s.Waiting)
		}
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"k:0 first 1", "k:1 first 1", "k:2 first 1"})
	})
}

// A handler that ignores the loss of its lease does not keep its key, nor anything else, from going on.
func TestHandlerThatIgnoresALostLease(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Lease: 2 * time.Second})
		forever := make(chan struct{})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s %d", body(d), d.Deliveries)
			if d.Deliveries == 1 && body(d) == "k:0" {
				<-forever
			}
			return nil
		})
		r.keyed(topic, "k", 2)
		stop := start(t, w)
		pause(100 * time.Millisecond)
		d.set(func() { d.extend = func() error { return ferry.ErrUnknown } })
		pause(4 * time.Second)
		d.set(func() { d.extend = nil })
		pause(10 * time.Second)
		equal(t, log.all(), []string{"k:0 1", "k:0 2", "k:1 2"})
		if s := w.Stats(); s.Zombies != 1 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
		close(forever)
		pause(time.Second)
		if s := w.Stats(); s.Zombies != 0 || s.Consumers[0].Late != 1 {
			t.Errorf("%+v", s)
		}
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 2 {
			t.Errorf("%+v", g)
		}
	})
}

// While leases cannot be renewed, nothing starts whose lease is about to end.
func TestNothingStartsOnAnEndingLease(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.set(func() { d.extend = func() error { return ferry.ErrUnknown } })
		w := worker.New(r.broker, worker.Options{Concurrency: 2, Lease: time.Second})
		var runs atomic.Int64
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if left := time.Until(d.LeaseUntil); left <= 100*time.Millisecond {
				t.Errorf("%s starts with %v left", d.Body, left)
			}
			if n := runs.Add(1); n > 200 && n < 210 { // when much was prefetched for fast handlers
				time.Sleep(950 * time.Millisecond)
			}
			return nil
		})
		r.publish(topic, numbered(1000))
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1000 {
			t.Errorf("%+v", g)
		}
	})
}

// The broker says that leases are lost of which some run and some wait.
func TestLostLeasesOfAWholeRun(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Lease: 3 * time.Second})
		var log journal
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			log.add("%s/%d", body(d), d.Deliveries)
			if d.Deliveries == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		r.keyed(topic, "k", 3)
		stop := start(t, w)
		pause(100 * time.Millisecond)
		d.set(func() { d.extend = func() error { return ferry.ErrLeaseLost } }) // a little early
		pause(1500 * time.Millisecond)
		if s := w.Stats().Consumers[0]; s.Waiting != 0 || s.Running != 0 || s.LeasesLost != 1 || s.Lanes != 0 {
			t.Errorf("%+v", s)
		}
		d.set(func() { d.extend = nil })
		pause(time.Minute)
		mustStop(t, stop)
		if lines := log.all(); len(lines) != 4 || lines[0] != "k:0/1" || lines[1] != "k:0/2" {
			t.Errorf("%q", lines)
		}
	})
}
