package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// Each message of a batch passes the middleware: the handler gets those that come through, in order, and each has an
// outcome of its own.
func TestMiddlewareOfABatch(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		var foreseen []ferry.Outcome
		outer := func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error {
				err := next(ctx, d)
				o, ok := worker.OutcomeOf(ctx, err)
				if !ok {
					t.Errorf("%s: nobody knows what becomes of it", d.Body)
				}
				foreseen = append(foreseen, o)
				return err
			}
		}
		inner := func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error {
				switch string(d.Body) {
				case "dropped":
					return worker.Drop(nil)
				case "panics":
					panic("no")
				case "twice":
					_ = next(ctx, d)
					return worker.Fatal(next(ctx, d))
				}
				err := next(ctx, d)
				log.add("%s: %v", d.Body, err)
				return err
			}
		}
		w := worker.New(r.broker, worker.Options{MaxAttempts: 1})
		w.Use(outer)
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			errs := make(worker.ItemErrors, len(ms))
			var got []string
			for i, m := range ms {
				got = append(got, string(m.Value))
				if string(m.Value) == "fails" {
					errs[i] = errBilling
				}
			}
			log.add("handler: %v", got)
			return errs
		}, worker.Use(inner))
		r.publish(topic, []string{"a", "dropped", "fails", "panics", "b", "twice"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, log.all(), []string{"handler: [a fails b twice]", "b: <nil>", "fails: timeout to billing", "a: <nil>"})
		if g := r.group(topic); g.Acked != 2 || g.Dropped != 1 || g.Dead != 3 {
			t.Errorf("%+v", g)
		}
		slices.Sort(foreseen)
		equal(t, foreseen, []ferry.Outcome{ferry.OutcomeAck, ferry.OutcomeAck, ferry.OutcomeDead,
			ferry.OutcomeDead, ferry.OutcomeDrop})
	})
}

// A batch of which nothing comes through does not bother its handler.
func TestMiddlewareTurnsAWholeBatchAway(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		worker.HandleBatch(w, topic, func(context.Context, []*ferry.Msg[[]byte]) error {
			t.Error("the handler was called")
			return nil
		}, worker.Use(func(worker.Handler) worker.Handler {
			return func(context.Context, *ferry.Delivery) error { return worker.Drop(nil) }
		}))
		r.publish(topic, []string{"a", "b"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if g := r.group(topic); g.Dropped != 2 {
			t.Errorf("%+v", g)
		}
	})
}
