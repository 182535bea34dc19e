package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// noting returns hooks that note every call in log.
func noting(log *journal) ferry.Hooks {
	note := func(name string) func(context.Context, ferry.Event) {
		return func(_ context.Context, e ferry.Event) {
			if e.Instance != "me" {
				log.add("%s by %q", name, e.Instance)
				return
			}
			text := ""
			if e.Delivery != nil {
				text = " " + body(e.Delivery)
			}
			if e.Err != nil {
				text += ": " + e.Err.Error()
			}
			if name == "settled" {
				text += " " + e.Outcome.String()
			}
			log.add("%s%s", name, text)
		}
	}
	return ferry.Hooks{
		Received: note("received"), Started: note("started"), Succeeded: note("succeeded"), Failed: note("failed"),
		Settled: note("settled"), WorkerStarted: note("worker started"), WorkerStopped: note("worker stopped"),
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log journal
		r := newRig(t, nil, noting(&log))
		w := worker.New(r.broker, worker.Options{Instance: "me", Concurrency: 1})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if body(d) == "bad" {
				return worker.Fatal(errBilling)
			}
			return nil
		})
		stop := start(t, w)
		pause(0)
		r.publish(topic, []string{"good"})
		pause(time.Second)
		r.publish(topic, []string{"bad"})
		pause(time.Second)
		mustStop(t, stop)
		equal(t, log.all(), []string{
			"worker started",
			"received good", "started good", "succeeded good", "settled good ack",
			"received bad", "started bad", "failed bad: timeout to billing", "settled bad dead",
			"worker stopped",
		})
	})
}

// A message that is parked has neither succeeded nor failed.
func TestParkedIsNotFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log journal
		r := newRig(t, nil, noting(&log))
		w := worker.New(r.broker, worker.Options{Instance: "me", Concurrency: 1})
		parked := map[string]bool{}
		park := func(d *ferry.Delivery) error {
			if !parked[body(d)] {
				parked[body(d)] = true
				return worker.Park(time.Minute)
			}
			return nil
		}
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error { return park(d) })
		worker.HandleBatch(w, "batches", func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			return park(ms[0].Delivery)
		}, worker.BatchSize(1))
		stop := start(t, w)
		pause(0)
		r.publish(topic, []string{"one"})
		pause(2 * time.Minute)
		r.publish("batches", []string{"two"})
		pause(2 * time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{
			"worker started",
			"received one", "started one", "settled one release", "received one", "started one",
			"succeeded one", "settled one ack",
			"received two", "started two", "settled two release", "received two", "started two",
			"succeeded two", "settled two ack",
			"worker stopped",
		})
	})
}

func TestHooksThatPanicHarmNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boom := func(context.Context, ferry.Event) { panic("boom") }
		r := newRig(t, nil, ferry.Hooks{Received: boom, Started: boom, Succeeded: boom, Failed: boom, Settled: boom,
			WorkerStarted: boom, WorkerStopped: boom})
		w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Second), MaxAttempts: 2})
		worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
			if d.Attempt == 1 {
				return errBilling
			}
			return nil
		})
		r.publish(topic, numbered(10))
		stop := start(t, w)
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 10 {
			t.Errorf("%+v", g)
		}
	})
}

func TestAuthorizeRefusesASubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, ferry.Hooks{Authorize: func(_ context.Context, a ferry.Access) error {
			if a.Message == nil && a.Topic == topic && a.Group == "billing" {
				return errors.New("not yours")
			}
			return nil
		}})
		w := worker.New(r.broker, worker.Options{})
		worker.HandleRaw(w, topic, nothing, worker.Group("billing"))
		if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrRefused) {
			t.Errorf("Run returned %v", err)
		}
	})
}
