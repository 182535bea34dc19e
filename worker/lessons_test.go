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

// TestHandlerSeesTheDelivery: a handler that gets only the payload cannot be idempotent.
//
// Lesson: L17
func TestHandlerSeesTheDelivery(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		published := time.Now()
		r.publish(topic, []string{"x"}, ferry.ID("id-1"), ferry.Key("k"), ferry.Header("trace", "abc"))
		var seen []ferry.Delivery
		w := worker.New(r.broker, worker.Options{})
		worker.Handle(w, topic, func(_ context.Context, m *ferry.Msg[[]byte]) error {
			seen = append(seen, *m.Delivery)
			if m.Attempt == 1 {
				return errors.New("once more")
			}
			return nil
		}, worker.Retry(ferry.Delays(time.Second)))
		stop := start(t, w)
		pause(2 * time.Second)
		mustStop(t, stop)
		if len(seen) != 2 {
			t.Fatalf("handled %d times, want 2", len(seen))
		}
		for i, d := range seen {
			if d.ID != "id-1" || d.Topic != topic || d.Key != "k" || d.Headers["trace"] != "abc" ||
				d.Group != driver.DefaultGroup ||
				!d.PublishedAt.Equal(published) || d.Attempt != i+1 || d.Deliveries != 1 || string(d.Body) != "x" {
				t.Errorf("delivery %d: %+v of %+v", i+1, d, d.Message)
			}
		}
	})
}

// TestFailedDeadLetterIsNotAcked: while the dead letter cannot be written the message stays unsettled, and it is
// written once the broker is back.
//
// Lesson: R4, L45
func TestFailedDeadLetterIsNotAcked(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		r.publish(topic, []string{"x"})
		refused := 0
		d.set(func() {
			d.settle = func(s []driver.Settlement) error {
				if s[0].Outcome != driver.Dead {
					t.Errorf("settled with %s, want only dead", s[0].Outcome)
				}
				refused++
				return ferry.ErrNotApplied
			}
		})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
			return worker.Fatal(errors.New("no such user"))
		})
		stop := start(t, w)
		pause(3 * time.Second)
		if g := r.group(topic); g.Acked != 0 || g.Dead != 0 || g.Inflight != 1 || refused == 0 {
			t.Errorf("after %d refusals: %+v, want it unsettled", refused, g)
		}
		d.set(func() { d.settle = nil })
		pause(3 * time.Second)
		mustStop(t, stop)
		if dl := r.dead(topic); dl.Reason != driver.ReasonFatal || dl.Error != "no such user" {
			t.Errorf("dead letter %+v", dl)
		}
	})
}
