package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// A follower that is held behind a long handler does not start after its TTL.
func TestTTLEndsWhileHeld(t *testing.T) {
	for name, order := range map[string][]worker.HandlerOption{"strict": nil, "relaxed": {worker.Relaxed()}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				r.publish(topic, []string{"head"}, ferry.Key("k"))
				r.publish(topic, []string{"short"}, ferry.Key("k"), ferry.TTL(time.Second))
				r.publish(topic, []string{"long"}, ferry.Key("k"), ferry.TTL(time.Minute))
				r.publish(topic, []string{"short"}, ferry.Key("k"), ferry.TTL(2*time.Second))
				r.publish(topic, []string{"tail"}, ferry.Key("k"))
				var log journal
				w := worker.New(r.broker, worker.Options{Concurrency: 4})
				worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
					log.add("%s %v", body(d), d.Cause)
					time.Sleep(5 * time.Second)
					return nil
				}, order...)
				stop := start(t, w)
				pause(time.Minute)
				mustStop(t, stop)
				for i, line := range log.all() {
					if want := []string{"head", "long", "tail"}; i >= len(want) || line[:4] != want[i] {
						t.Errorf("run %d: %s", i, line)
					}
				}
				if g := r.group(topic); g.Acked != 3 || g.Expired != 2 || g.Ready+g.Inflight+g.Waiting != 0 {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// The TTL ends exactly when a handler takes long; one that runs may finish.
func TestTTLOfARunningMessage(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.publish(topic, []string{"x"}, ferry.TTL(time.Second))
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			time.Sleep(5 * time.Second)
			return ctx.Err()
		})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 || g.Expired != 0 {
			t.Errorf("%+v", g)
		}
	})
}

// What a batch handler gets is within its TTL too, whether it waits for the batch to fill or behind others of its key.
func TestTTLEndsWhileABatchFills(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.publish(topic, []string{"short"}, ferry.TTL(time.Second))
		r.publish(topic, []string{"a"})
		r.publish(topic, []string{"b"}, ferry.Key("k"))
		r.publish(topic, []string{"short"}, ferry.Key("k"), ferry.TTL(time.Second))
		r.publish(topic, []string{"c"}, ferry.Key("k"))
		var log journal
		w := worker.New(r.broker, worker.Options{})
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			for _, m := range ms {
				log.add("%s", m.Value)
			}
			return nil
		}, worker.BatchSize(100), worker.BatchWait(3*time.Second))
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"a", "b", "c"})
		if g := r.group(topic); g.Acked != 3 || g.Expired != 2 {
			t.Errorf("%+v", g)
		}
	})
}

// A dead letter that is replayed after its TTL runs: that is what the operator wants.
func TestReplayedAfterItsTTLRuns(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		runs := 0
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
			if runs++; runs == 1 {
				return worker.Dead("broken", nil)
			}
			return nil
		})
		r.publish(topic, []string{"x"}, ferry.TTL(time.Second))
		stop := start(t, w)
		pause(time.Minute)
		e := r.browse(topic, driver.StateDead)[0]
		m := driver.Move{Target: driver.Target{Topic: topic, Group: e.Group, ID: e.ID}}
		if err := errors.Join(r.memory.Move(context.Background(), []driver.Move{m})...); err != nil {
			t.Fatal(err)
		}
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); runs != 2 || g.Acked != 1 || g.Expired != 0 {
			t.Errorf("%d runs, %+v", runs, g)
		}
	})
}

// A broker whose clock is behind does not expire what comes back. It must not go back and forth without a pause.
func TestTTLOfABrokerWhoseClockIsBehind(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		d.seen = new(received)
		d.set(func() {
			d.received = func(d *driver.Delivery) {
				d.TTL = d.ClaimedAt.Sub(d.PublishedAt) + 1
				if d.Cause != driver.CauseFirst {
					t.Errorf("cause %v of what no handler saw", d.Cause)
				}
			}
		})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleBatch(w, topic, func(context.Context, []*ferry.Msg[[]byte]) error {
			t.Error("it ran")
			return nil
		}, worker.BatchWait(time.Millisecond))
		r.publish(topic, []string{"x"}, ferry.TTL(time.Second))
		stop := start(t, w)
		pause(2 * time.Second)
		mustStop(t, stop)
		if n := len(d.seen.ds); n < 10 || n > 100 {
			t.Errorf("%d deliveries in a second", n)
		}
		if g := r.group(topic); g.Expired != 1 {
			t.Errorf("%+v", g)
		}
	})
}
