package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// received notes the deliveries a subscription hands out, to revoke them.
type received struct {
	mu sync.Mutex
	ds []*driver.Delivery
}

func (r *received) note(next worker.Handler) worker.Handler {
	return func(ctx context.Context, d *ferry.Delivery) error {
		r.mu.Lock()
		r.ds = append(r.ds, d)
		r.mu.Unlock()
		return next(ctx, d)
	}
}

func TestRevokedMessagesMayFinish(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 8})
		var got received
		w.Use(got.note)
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(3 * time.Second); return nil })
		r.keyed(topic, "k", 5)
		stop := start(t, w)
		pause(time.Second)
		if s := w.Stats().Consumers[0]; s.Running != 1 || s.Waiting != 4 {
			t.Fatalf("%+v", s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		d.revoking(ctx, got.ds)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("the rebalance was held up for %v", took)
		}
		if g := r.group(topic); g.Acked != 1 {
			t.Errorf("%+v", g)
		}
		mustStop(t, stop)
	})
}

func TestRevokedMessagesAreLostInTheEnd(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		var got received
		w.Use(got.note)
		var cause error
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		d.revoking(ctx, got.ds)
		pause(0)
		if !errors.Is(cause, ferry.ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
		if s := w.Stats().Consumers[0]; s.Refused != 1 || s.LeasesLost != 1 {
			t.Errorf("%+v", s)
		}
		mustStop(t, stop)
	})
}

// What has not started goes back at once, and what is behind it in its key with it.
func TestRevokedMessagesThatWaitGoBack(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		var all received
		w := worker.New(r.broker, worker.Options{Concurrency: 8})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { time.Sleep(10 * time.Second); return nil })
		d.set(func() { d.seen = &all })
		r.keyed(topic, "k", 5)
		stop := start(t, w)
		pause(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		d.revoking(ctx, all.ds[2:]) // behind the running one and the next
		if s := w.Stats().Consumers[0]; s.Running != 1 {
			t.Errorf("%+v", s)
		}
		if g := r.group(topic); g.Inflight > 4 {
			t.Errorf("nothing was given back: %+v", g)
		}
		pause(5 * time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 5 {
			t.Errorf("%+v", g)
		}
	})
}
