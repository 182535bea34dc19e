package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

func TestRecentTellsTheLastMinute(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1, MaxAttempts: 1})
		worker.HandleRaw(w, topic, func(ctx context.Context, d *ferry.Delivery) error {
			switch string(d.Body) {
			case "bad":
				return errors.New("bad")
			case "panic":
				panic("boom")
			case "slow":
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}, worker.Timeout(2*time.Second))
		worker.Handle(w, "typed", func(context.Context, *ferry.Msg[int]) error { return nil })
		stop := start(t, w)
		r.publish(topic, []string{"a", "b", "c", "d", "e", "f", "bad", "panic", "slow"})
		r.publish("typed", []string{"no number"})
		time.Sleep(20 * time.Second)
		s := w.Stats()
		got := s.Consumers[0].Recent
		if got.Handled != 9 || got.Failed != 3 || got.Panics != 1 || got.Timeouts != 1 || got.Retried != 0 {
			t.Errorf("recent %+v, want 9 handled, 3 failed, 1 panic, 1 timeout", got)
		}
		if rate := got.ErrorRate(); rate < 0.33 || rate > 0.34 {
			t.Errorf("error rate %v, want a third", rate)
		}
		if l := got.Latency; l.P50 < 85*time.Millisecond || l.P50 > 115*time.Millisecond || l.Max != 2*time.Second ||
			l.P99 < 1700*time.Millisecond {
			t.Errorf("latency %+v, want a median of 100 ms and 2 s at most", l)
		}
		if wait := got.Wait; wait.Max < 600*time.Millisecond || wait.Max > 3*time.Second {
			t.Errorf("wait %+v: the last of nine waited for the others", wait)
		}
		if got.Span != 20*time.Second || got.PerSecond != 9.0/20 {
			t.Errorf("%v per second over %v, want 0.45 over 20 s", got.PerSecond, got.Span)
		}
		if typed := s.Consumers[1].Recent; typed.ParseErrors != 1 || typed.Failed != 1 {
			t.Errorf("typed handler: %+v, want one parse error", typed)
		}
		if s.Uptime != 20*time.Second || s.Consumers[0].LastHandled.IsZero() {
			t.Errorf("uptime %v, last handled %v", s.Uptime, s.Consumers[0].LastHandled)
		}
		time.Sleep(time.Minute)
		if late := w.Stats().Consumers[0].Recent; late.Handled != 0 || late.Latency.Max != 0 || late.ErrorRate() != 0 ||
			late.Latencies.Count() != 0 {
			t.Errorf("a minute later: %+v, want nothing", late)
		}
		all := w.Stats().Consumers[0]
		want := []worker.FailureCount{{Reason: "max_attempts", Dead: 1}, {Reason: "panic", Dead: 1},
			{Reason: "timeout", Dead: 1}}
		if all.Latencies.Count() != 9 || all.Waits.Count() != 9 || !slices.Equal(all.Failures, want) {
			t.Errorf("in all %d handled, %d waited, failures %+v, want 9, 9, %+v", all.Latencies.Count(),
				all.Waits.Count(), all.Failures, want)
		}
		mustStop(t, stop)
	})
}
