package unique_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/worker"
)

// A follow-up claims its id when it is emitted. A handler that fails gives it back, one that comes again goes on with
// its own.
func TestEmit(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		fail := true
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, "orders", func(ctx context.Context, _ *ferry.Delivery) error {
			if err := worker.Emit(ctx, topic, []byte("x"), ferry.Unique("r1", time.Hour)); err != nil {
				return worker.Fatal(err)
			}
			if fail {
				fail = false
				return errBilling
			}
			return nil
		}, worker.Retry(ferry.Delays(time.Minute)))
		run(t, w)
		order := func() {
			if _, err := ferry.Publish(r.ctx, r.broker, "orders", []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		order()
		pause(time.Second)
		if n := r.values(); n != 0 {
			t.Errorf("%d values after an attempt that failed", n)
		}
		pause(time.Minute)
		if n := r.values(); n != 1 {
			t.Errorf("%d values after one that succeeded", n)
		}
		order() // its follow-up is refused
		pause(time.Second)
		page, err := r.broker.Driver().Browse(r.ctx, ferry.Query{Topic: "orders", Group: "default", State: "dead"})
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		r.work("default", func(context.Context, *ferry.Delivery) error { return nil })
		pause(time.Second)
		r.accepted()
	})
}

// The settlement of the parent is lost, and its next delivery emits the same again: the id is its own.
func TestEmitAgain(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		refused := 0
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, "orders", func(ctx context.Context, _ *ferry.Delivery) error {
			err := worker.Emit(ctx, topic, []byte("x"), ferry.Unique("r1", time.Hour))
			if errors.Is(err, ferry.ErrConflict) {
				refused++
			}
			return err
		})
		run(t, w)
		r.driver.Set(faulty.Settle, faulty.Once(faulty.Lose(ferry.ErrUnknown)))
		if _, err := ferry.Publish(r.ctx, r.broker, "orders", []byte("x")); err != nil {
			t.Fatal(err)
		}
		pause(time.Minute)
		if refused != 0 {
			t.Error("its own id was refused")
		}
		if n := r.values(); n != 1 {
			t.Errorf("%d values", n)
		}
	})
}
