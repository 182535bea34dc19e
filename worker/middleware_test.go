package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestMiddlewareWrapsInOrder(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var log journal
		named := func(name string) worker.Middleware {
			return func(next worker.Handler) worker.Handler {
				return func(ctx context.Context, d *ferry.Delivery) error {
					log.add("%s in", name)
					err := next(ctx, d)
					log.add("%s out: %v", name, err)
					if name == "b" {
						return worker.Drop(err)
					}
					return err
				}
			}
		}
		w := worker.New(r.broker, worker.Options{})
		w.Use(named("a"), named("b"))
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[[]byte]) error {
			log.add("handler")
			return errBilling
		}, worker.Use(named("c")))
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, log.all(), []string{"a in", "b in", "c in", "handler",
			"c out: timeout to billing", "b out: timeout to billing", "a out: timeout to billing"})
		if g := r.group(topic); g.Dropped != 1 {
			t.Errorf("%+v", g)
		}
	})
}

func TestMiddlewareSeesWhatDoesNotDecode(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var seen error
		w := worker.New(r.broker, worker.Options{})
		w.Use(func(next worker.Handler) worker.Handler {
			return func(ctx context.Context, d *ferry.Delivery) error {
				seen = next(ctx, d)
				return seen
			}
		})
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[int]) error { return nil })
		m := &ferry.Message{Topic: topic, Body: []byte("no number"), ContentType: "application/json"}
		if _, err := r.broker.Publish(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if seen == nil || r.dead(topic).Reason != driver.ReasonInvalidMessage {
			t.Errorf("middleware saw %v", seen)
		}
	})
}
