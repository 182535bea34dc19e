package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// The broker is told how long a handler ran, whatever it decided, and of a batch how long that ran.
func TestSettlementsTellHowLongHandlersRan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, ferry.Hooks{})
		for _, topic := range []string{"one", "many"} {
			if err := r.memory.EnsureTopic(t.Context(), topic, driver.TopicConfig{Keep: time.Hour}); err != nil {
				t.Fatal(err)
			}
			r.publish(topic, []string{"1", "2", "3"})
		}
		w := worker.New(r.broker, worker.Options{Concurrency: 1, Instance: "host-7"})
		worker.HandleRaw(w, "one", func(_ context.Context, d *ferry.Delivery) error {
			time.Sleep(time.Duration(d.Body[0]-'0') * time.Second)
			switch string(d.Body) {
			case "2":
				return worker.Drop(nil)
			case "3":
				if d.Attempt == 1 {
					return worker.RetryAfter(errors.New("once more"), 0)
				}
			}
			return nil
		})
		worker.HandleBatch(w, "many", func(context.Context, []*ferry.Msg[[]byte]) error {
			time.Sleep(time.Minute)
			return nil
		}, worker.BatchSize(3))
		begin := time.Now()
		stop := start(t, w)
		time.Sleep(5 * time.Minute)
		mustStop(t, stop)
		for _, e := range r.browse("one", driver.StateDone) {
			if want := time.Duration(e.Body[0]-'0') * time.Second; e.Took != want || e.Instance != "host-7" ||
				!e.SettledAt.After(begin) {
				t.Errorf("%s took %v, settled by %q at %v; want %v", e.Body, e.Took, e.Instance, e.SettledAt, want)
			}
		}
		for _, e := range r.browse("many", driver.StateDone) {
			if e.Took != time.Minute {
				t.Errorf("%s of a batch took %v", e.Body, e.Took)
			}
		}
		if one, many := len(r.browse("one", driver.StateDone)),
			len(r.browse("many", driver.StateDone)); one != 3 || many != 3 {
			t.Errorf("%d and %d are done, want 3 of each", one, many)
		}
	})
}
