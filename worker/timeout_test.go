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

func TestTimeoutEndsTheContextWithItsCause(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		begin := time.Now()
		var took time.Duration
		var cause, ctxErr error
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			took, cause, ctxErr = time.Since(begin), context.Cause(ctx), ctx.Err()
			return errBilling
		}, worker.Timeout(5*time.Second), worker.MaxAttempts(1))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if took != 5*time.Second || !errors.Is(cause, worker.ErrTimeout) || !errors.Is(ctxErr, context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v, %v", took, cause, ctxErr)
		}
		if dl := r.dead(topic); dl.Reason != driver.ReasonTimeout || dl.Error != errBilling.Error() {
			t.Errorf("dead letter %q: %q", dl.Reason, dl.Error)
		}
	})
}

func TestResultJustAfterTheTimeoutCounts(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
			<-ctx.Done()
			time.Sleep(500 * time.Millisecond) // within the grace
			return nil
		}, worker.Timeout(5*time.Second))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 1 {
			t.Errorf("%+v", g)
		}
	})
}

func TestZombieKeepsItsSlotAndItsResultIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 2, Retry: ferry.Delays(time.Hour)})
		wake := make(chan struct{})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if body(d) == "hang" {
				<-wake // ignores its context
				return nil
			}
			log.add("%s", body(d))
			return nil
		}, worker.Timeout(5*time.Second))
		r.publish(topic, []string{"hang"})
		stop := start(t, w)
		pause(5500 * time.Millisecond)
		if s := w.Stats(); s.Zombies != 0 || s.Running != 1 {
			t.Errorf("within the grace: %+v", s)
		}
		pause(time.Second)
		s := w.Stats()
		if s.Zombies != 1 || s.Running != 0 || s.Consumers[0].Zombies != 1 || s.Consumers[0].Running != 1 ||
			s.Consumers[0].Retried != 1 {
			t.Errorf("%+v", s)
		}
		if g := r.group(topic); g.Waiting != 1 || g.Inflight != 0 {
			t.Errorf("not settled: %+v", g)
		}
		r.publish(topic, numbered(10)) // the other slot works on
		pause(time.Second)
		if n := len(log.all()); n != 10 {
			t.Errorf("%d of 10 handled beside the zombie", n)
		}
		close(wake)
		pause(time.Second)
		if s := w.Stats(); s.Zombies != 0 || s.Consumers[0].Late != 1 || s.Consumers[0].Running != 0 {
			t.Errorf("after it returned: %+v", s)
		}
		if g := r.group(topic); g.Waiting != 1 || g.Acked != 10 {
			t.Errorf("its late result counted: %+v", g)
		}
		mustStop(t, stop)
	})
}

func TestTimeoutOfAKeyLetsTheKeyGoOn(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Retry: ferry.Delays(time.Second)})
		forever := make(chan struct{})
		var log journal
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			log.add("%s/%d", body(d), d.Attempt)
			if d.Attempt == 1 && body(d) == "k:0" {
				<-forever
			}
			return nil
		}, worker.Timeout(5*time.Second))
		r.keyed(topic, "k", 3)
		stop := start(t, w)
		pause(time.Minute)
		equal(t, log.all(), []string{"k:0/1", "k:0/2", "k:1/1", "k:2/1"})
		close(forever)
		mustStop(t, stop)
	})
}
