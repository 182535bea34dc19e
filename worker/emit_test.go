package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestEmitOnlyWhenTheHandlerSucceeds(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Second)})
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			for _, value := range []string{"one", "two"} {
				if err := worker.Emit(ctx, "next", []byte(value), ferry.Key("k")); err != nil {
					t.Error(err)
				}
			}
			if err := worker.Emit(ctx, "next", []byte("three"), ferry.ID("mine")); err != nil {
				t.Error(err)
			}
			if d.Attempt < 3 {
				return errBilling
			}
			return nil
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(500 * time.Millisecond)
		if _, err := r.memory.Stats(context.Background(), "next"); !errors.Is(err, ferry.ErrNotFound) {
			t.Errorf("something was emitted by a failed attempt: %v", err)
		}
		pause(time.Minute)
		mustStop(t, stop)
		entries := r.browse("next", driver.StateReady)
		var got []string
		for _, e := range entries {
			got = append(got, string(e.Body)+e.Key)
			if !e.OwnID {
				t.Errorf("%s could be stored twice", e.Body)
			}
		}
		slices.Sort(got)
		equal(t, got, []string{"onek", "three", "twok"})
	})
}

// Two groups handle the same message: what each emits is its own.
func TestEmitOfTwoGroups(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		for _, g := range []string{"billing", "shipping"} {
			worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
				return worker.Emit(ctx, "next", []byte(g))
			}, worker.Group(g))
		}
		stop := start(t, w)
		pause(0)
		r.publish(topic, []string{"x"})
		pause(time.Second)
		mustStop(t, stop)
		if n := len(r.browse("next", driver.StateReady)); n != 2 {
			t.Errorf("%d messages emitted, want 2", n)
		}
	})
}

func TestEmitChecksAtTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := errors.New("not yours")
		r := newRig(t, nil, ferry.Hooks{Authorize: func(_ context.Context, a ferry.Access) error {
			if a.Topic == "secret" {
				return refuse
			}
			return nil
		}})
		w := worker.New(r.broker, worker.Options{})
		var errs []error
		var later context.Context
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			later = ctx
			errs = append(errs,
				worker.Emit(ctx, "no such name!", []byte("x")),
				worker.Emit(ctx, "next", make([]byte, 5<<20)),
				worker.Emit(ctx, "next", func() {}),
				worker.Emit(ctx, "secret", []byte("x")))
			return nil
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		for i, kind := range []error{ferry.ErrInvalid, ferry.ErrTooLarge, ferry.ErrInvalid, ferry.ErrRefused} {
			if !errors.Is(errs[i], kind) {
				t.Errorf("call %d returned %v, want %v", i, errs[i], kind)
			}
		}
		if err := worker.Emit(later, "next", []byte("x")); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("Emit after the handler returned: %v", err)
		}
		if err := worker.Emit(context.Background(), "next", []byte("x")); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("Emit outside a handler: %v", err)
		}
		mustStop(t, stop)
	})
}

// A broker that will never take the follow-ups makes the attempt a failure, not a loop.
func TestEmitThatTheBrokerRefuses(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.set(func() {
			d.settle = func(s []driver.Settlement) error {
				if s[0].Emit != nil {
					return ferry.ErrUnsupported
				}
				return nil
			}
		})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			return worker.Emit(ctx, "next", []byte("x"))
		}, worker.MaxAttempts(2), worker.Retry(ferry.Delays(time.Second)))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if dl := r.dead(topic); dl.Reason != driver.ReasonMaxAttempts || dl.Attempts != 2 {
			t.Errorf("%+v", dl)
		}
	})
}

// A follow-up passes the Publishing hook, which may not do more than set headers.
func TestPublishingHookOfEmit(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		b, err := ferry.New(r.memory, ferry.Options{
			Hooks: ferry.Hooks{Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
				if m.ID == "" {
					t.Error("it has no id")
				}
				m.Headers["trace"], m.Topic = "t1", "elsewhere"
				return ctx
			}}})
		if err != nil {
			t.Fatal(err)
		}
		w := worker.New(b, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			return worker.Emit(ctx, "next", []byte("x"))
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		es := r.browse("next", "ready")
		if len(es) != 1 || es[0].Headers["trace"] != "t1" {
			t.Errorf("%+v", es)
		}
	})
}
