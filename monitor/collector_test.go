package monitor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/worker"
)

func (r *rig) collector(o monitor.CollectorOptions) *monitor.Collector {
	r.Helper()
	r.browse = func(driver.Query) []driver.Entry {
		r.Error("a collection reads messages")
		return nil
	}
	c, err := monitor.NewCollector(r.broker, o)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

func TestFiguresOfOneProcess(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.usage = &driver.Usage{Memory: 70, MemoryLimit: 100, Connections: 7}
		w, stop := r.work(worker.Options{Concurrency: 1, MaxAttempts: 2, Retry: ferry.Delays(time.Second)},
			func(_ context.Context, d *ferry.Delivery) error {
				time.Sleep(100 * time.Millisecond)
				if string(d.Body) == "3" {
					return errors.New("bad")
				}
				return nil
			})
		defer stop()
		c := r.collector(monitor.CollectorOptions{Options: monitor.Options{Workers: []*worker.Worker{w}}})
		c.Collect(r.Context())
		r.publish(10)
		r.publish(2, ferry.Delay(time.Hour))
		time.Sleep(10 * time.Second)
		f := c.Collect(r.Context())
		if f.Err != nil || f.Dead != 1 || f.Delayed != 2 || f.Ready+f.Inflight+f.Waiting != 0 || f.InPerSecond != 1 ||
			f.OutPerSecond != 0.9 {
			t.Errorf("%+v", f)
		}
		h := f.Total
		if h.Handled != 11 || h.Failed != 2 || h.Retried != 1 || h.RetryRate() != 1.0/11 || h.ErrorRate() != 2.0/11 ||
			h.TimeoutRate() != 0 || h.Processes != 1 {
			t.Errorf("%+v", h)
		}
		if p95 := h.Latency().P95; p95 < 85*time.Millisecond || p95 > 115*time.Millisecond ||
			h.Wait().Max < 800*time.Millisecond {
			t.Errorf("p95 %v, waited %v at most", p95, h.Wait().Max)
		}
		if f.Backend.Memory != 70 || f.Backend.Connections != 7 || f.Process.Memory == 0 {
			t.Errorf("%+v, %+v", f.Backend, f.Process)
		}
		if q := f.Queues[1]; q.Retried != 1 || q.Died != 1 || q.Acked != 9 {
			t.Errorf("%+v", q)
		}
	})
}

// TestFiguresOfAllProcesses: rates add up, and percentiles are those of all durations together, not an average of
// averages.
func TestFiguresOfAllProcesses(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		took := func(n uint64, d time.Duration) worker.Histogram {
			return worker.Histogram{Counts: append(make([]uint64, worker.HistogramBucket(d)), n), Sum: time.Duration(n) * d,
				Max: d}
		}
		processes := []monitor.Process{
			{Name: "one", Handlers: []monitor.Handler{{Topic: "orders", Group: "g", PerSecond: 9, Handled: 990,
				Latencies: took(990, time.Millisecond)}}},
			{Name: "two", Handlers: []monitor.Handler{
				{Topic: "orders", Group: "g", PerSecond: 1, Handled: 10, Failed: 5, Timeouts: 5, Latencies: took(10, time.Minute)},
				{Topic: "mails", Group: "g", PerSecond: 2, Handled: 100, Retried: 10, Latencies: took(100, time.Second)},
			}},
		}
		c := r.collector(monitor.CollectorOptions{Processes: func(context.Context, *ferry.Broker) ([]monitor.Process,
			error) {
			return processes, nil
		}})
		f := c.Collect(r.Context())
		if len(f.Processes) != 2 || len(f.Handlers) != 2 || f.Handlers[0].Topic != "mails" || f.Handlers[1].Processes != 2 ||
			f.Total.Processes != 2 {
			t.Fatalf("%+v", f)
		}
		orders := f.Handlers[1]
		if q := orders.Latency(); q.P50 > 2*time.Millisecond || q.P99 < 50*time.Second || orders.PerSecond != 10 ||
			orders.ErrorRate() != 0.005 || orders.TimeoutRate() != 0.005 {
			t.Errorf("%+v, %+v", orders, q)
		}
		if f.Total.PerSecond != 12 || f.Total.Handled != 1100 {
			t.Errorf("%+v", f.Total)
		}
	})
}

// TestOnePartFailing: the other parts are there.
func TestOnePartFailing(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		away := errors.New("nobody tells")
		c := r.collector(monitor.CollectorOptions{Processes: func(context.Context, *ferry.Broker) ([]monitor.Process,
			error) {
			return nil, away
		}})
		r.publish(3)
		if f := c.Collect(r.Context()); !errors.Is(f.Err, away) || f.Ready != 3 || len(f.Processes) != 1 {
			t.Errorf("%+v", f)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		c := r.collector(monitor.CollectorOptions{})
		runtest.Start(r, c.Run)
		at := func(d time.Duration, away bool) {
			time.Sleep(d)
			r.away.Store(away)
		}
		at(95*time.Second, true)
		at(20*time.Second, false)
		at(100*time.Second, true)
		at(40*time.Second, false)
		time.Sleep(45 * time.Second)
		synctest.Wait()
		f := c.Recent(r.Context(), time.Minute).Failures
		want := monitor.Failures{Uptime: 300 * time.Second, Count: 2, Last: f.Last, MTBF: 120 * time.Second,
			MTTR: 30 * time.Second}
		if f != want || time.Since(f.Last) != 80*time.Second {
			t.Errorf("%+v, %v ago, want %+v", f, time.Since(f.Last), want)
		}
		r.away.Store(true)
		if f := c.Collect(r.Context()).Failures; !f.Down || f.Count != 3 || f.MTTR != 30*time.Second {
			t.Errorf("%+v, want it down", f)
		}
	})
}

// TestRecentFiguresAreShared: those who ask together cost the broker one collection.
func TestRecentFiguresAreShared(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		c := r.collector(monitor.CollectorOptions{})
		asked := 0
		r.show = func(*driver.TopicStats) { asked++ }
		r.publish(1)
		first := c.Recent(r.Context(), 10*time.Second)
		once := asked
		time.Sleep(9 * time.Second)
		if again := c.Recent(r.Context(), 10*time.Second); !again.At.Equal(first.At) || asked != once {
			t.Errorf("collected again after %v", again.At.Sub(first.At))
		}
		time.Sleep(2 * time.Second)
		if later := c.Recent(r.Context(), 10*time.Second); later.At.Equal(first.At) {
			t.Error("figures of 11 s ago are told as those of 10 s")
		}
	})
}
