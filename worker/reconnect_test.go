package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestReconnect(t *testing.T) {
	away := func() error { return ferry.ErrNotApplied }
	for _, tc := range []struct {
		name      string
		leave     func(d *faulty)
		comeBack  func(d *faulty)
		call      string
		wantState worker.State
	}{
		{"subscribe", func(d *faulty) { d.subscribe = away }, func(d *faulty) {
			d.subscribe = nil
		}, "subscribe", worker.Reconnecting},
		{"receive", func(d *faulty) { d.receive = away }, func(d *faulty) {
			d.receive = nil
		}, "receive", worker.Reconnecting},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				d.set(func() { tc.leave(d) })
				w := worker.New(r.broker, worker.Options{})
				var handled atomic.Int64
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { handled.Add(1); return nil })
				if w.Health() != nil {
					t.Error("health before Run")
				}
				stop := start(t, w)
				r.publish(topic, numbered(3))
				pause(time.Minute)
				if n := d.count(tc.call); n < 60 || n > 200 { // about 1 s apart: neither asleep nor hot
					t.Errorf("%d calls in a minute", n)
				}
				h := w.Health()[0]
				if h.State != tc.wantState || !errors.Is(h.Err, ferry.ErrNotApplied) || time.Since(h.Since) < 59*time.Second {
					t.Errorf("while away: %+v", h)
				}
				d.set(func() { tc.comeBack(d) })
				pause(2 * time.Second)
				if handled.Load() != 3 {
					t.Errorf("%d of 3 handled 2 s after the broker came back", handled.Load())
				}
				pause(time.Second)
				if h := w.Health()[0]; h.State != worker.OK {
					t.Errorf("when back: %+v", h)
				}
				mustStop(t, stop)
				if h := w.Health()[0]; h.State != worker.Stopped {
					t.Errorf("stopped: %+v", h)
				}
			})
		})
	}
}

// The backend is back, but there is nothing to receive: health must not stay red.
func TestHealthRecoversWhenIdle(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		d.set(func() { d.receive = func() error { return ferry.ErrUnknown } })
		stop := start(t, w)
		pause(10 * time.Second)
		d.set(func() { d.receive = nil })
		pause(3 * time.Second)
		if h := w.Health()[0]; h.State != worker.OK {
			t.Errorf("%+v", h)
		}
		mustStop(t, stop)
	})
}

func TestPermanentErrorsAtStartEndRun(t *testing.T) {
	for _, kind := range []error{ferry.ErrInvalid, ferry.ErrUnsupported, ferry.ErrRefused, ferry.ErrConflict,
		ferry.ErrNotFound, ferry.ErrClosed} {
		t.Run(kind.Error(), func(t *testing.T) {
			broken(t, func(t *testing.T, r *rig, d *faulty) {
				d.set(func() { d.subscribe = func() error { return kind } })
				w := worker.New(r.broker, worker.Options{})
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
				if err := w.Run(context.Background()); !errors.Is(err, kind) {
					t.Errorf("Run returned %v", err)
				}
				if n := d.count("subscribe"); n != 1 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

func TestConflictingOrderEndsRun(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		nothing := func(context.Context, *ferry.Delivery) error { return nil }
		first := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(first, topic, nothing)
		stop := start(t, first)
		pause(0)
		second := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(second, topic, nothing, worker.Relaxed())
		if err := second.Run(context.Background()); !errors.Is(err, ferry.ErrConflict) {
			t.Errorf("Run returned %v", err)
		}
		mustStop(t, stop)
	})
}

func TestSettleIsRepeatedWhileTheLeaseHolds(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.set(func() { d.settle = func([]driver.Settlement) error { return ferry.ErrNotApplied } })
		w := worker.New(r.broker, worker.Options{})
		var runs atomic.Int64
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { runs.Add(1); return nil })
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Minute) // the lease is renewed meanwhile
		if n := d.count("settle"); n < 60 || n > 200 {
			t.Errorf("%d calls in a minute", n)
		}
		d.set(func() { d.settle = nil })
		pause(2 * time.Second)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 || runs.Load() != 1 {
			t.Errorf("%d runs, %+v", runs.Load(), g)
		}
	})
}

// The answer is lost, not the request: the repeat finds it done.
func TestSettleThatWasAppliedUnseen(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		var lost atomic.Bool
		d.set(func() {
			d.answer = func([]driver.Settlement) error {
				if lost.CompareAndSwap(false, true) {
					return ferry.ErrUnknown
				}
				return nil
			}
		})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second * 3)
		if s := w.Stats().Consumers[0]; s.Unconfirmed != 1 || s.Refused != 0 || s.Settling != 0 {
			t.Errorf("%+v", s)
		}
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 {
			t.Errorf("%+v", g)
		}
	})
}

// Everything fails now and then, and still each message is handled, in order, and none is lost.
func TestFlakyBroker(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		var n atomic.Int64
		flaky := func() error {
			switch n.Add(1) % 5 {
			case 0:
				return ferry.ErrNotApplied
			case 3:
				return ferry.ErrUnknown
			}
			return nil
		}
		d.set(func() {
			d.receive, d.extend = flaky, flaky
			d.settle = func([]driver.Settlement) error { return flaky() }
			d.answer = func([]driver.Settlement) error { // applied, whatever it says
				if flaky() != nil {
					return ferry.ErrUnknown
				}
				return nil
			}
		})
		o := newOrderly(t)
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			o.start(d)
			time.Sleep(10 * time.Millisecond)
			fail := n.Load()%17 == 0
			o.end(d, !fail)
			if fail {
				return worker.RetryAfter(errBilling, 10*time.Millisecond)
			}
			return nil
		}, worker.MaxAttempts(1000))
		for k := range 10 {
			r.keyed(topic, string(rune('a'+k)), 20)
		}
		stop := start(t, w)
		pause(10 * time.Minute)
		if s := w.Stats().Consumers[0]; s.Refused != 0 || s.Running+s.Waiting+s.Settling+s.Lanes != 0 {
			t.Errorf("%+v", s)
		}
		d.set(func() { d.receive, d.extend, d.settle, d.answer = nil, nil, nil, nil })
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 200 {
			t.Errorf("%+v", g)
		}
	})
}

// What has to be repeated goes before what came meanwhile: a key is settled in its order.
func TestSettleKeepsItsOrder(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		var log journal
		var calls atomic.Int64
		d.set(func() {
			d.settle = func(s []driver.Settlement) error {
				if calls.Add(1) < 3 {
					time.Sleep(4 * time.Millisecond) // more comes meanwhile
					return ferry.ErrNotApplied
				}
				for i := range s {
					log.add("%s", s[i].Delivery.Body)
				}
				return nil
			}
		})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(time.Millisecond); return nil })
		r.keyed(topic, "k", 10)
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		var want []string
		for _, n := range numbered(10) {
			want = append(want, "k:"+n)
		}
		equal(t, log.all(), want)
	})
}
