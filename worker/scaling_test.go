package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func TestScalingFollowsTheDepth(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var g gauge
		w := worker.New(r.broker, worker.Options{Scaling: worker.Scaling{Min: 2, Max: 20}})
		worker.HandleRaw(w, topic, g.sleeper(100*time.Millisecond))
		stop := start(t, w)
		synctest.Wait()
		if n := w.Stats().Concurrency; n != 2 {
			t.Errorf("%d handlers at the start, want Min", n)
		}
		r.publish(topic, numbered(2000))
		time.Sleep(1500 * time.Millisecond) // one look
		if n := w.Stats().Concurrency; n != 20 {
			t.Errorf("%d handlers with a deep queue, want Max", n)
		}
		time.Sleep(20 * time.Second)
		if n := r.group(topic).Acked; n != 2000 {
			t.Fatalf("%d of 2000 handled", n)
		}
		if most := g.most; most != 20 {
			t.Errorf("%d handlers ran at once, want 20", most)
		}
		time.Sleep(2 * time.Minute)
		if n := w.Stats().Concurrency; n != 2 {
			t.Errorf("%d handlers when idle, want Min", n)
		}
		mustStop(t, stop)
	})
}

// A load that comes and goes faster than the cooldown must not make the number swing.
func TestScalingDoesNotThrash(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var g gauge
		w := worker.New(r.broker, worker.Options{Scaling: worker.Scaling{Min: 1, Max: 10}})
		worker.HandleRaw(w, topic, g.sleeper(50*time.Millisecond))
		stop := start(t, w)
		changes, last := 0, w.Stats().Concurrency
		for second := range 300 {
			if second%20 < 10 { // ten seconds of load, ten of none
				r.publish(topic, numbered(150))
			}
			time.Sleep(time.Second)
			n := w.Stats().Concurrency
			if n < 1 || n > 10 {
				t.Fatalf("%d handlers, want 1 to 10", n)
			}
			if n != last {
				changes, last = changes+1, n
			}
		}
		if changes > 2 {
			t.Errorf("the number of handlers changed %d times under a square wave, want at most 2", changes)
		}
		if last < 5 {
			t.Errorf("%d handlers in the end, want those the waves need", last)
		}
		mustStop(t, stop)
	})
}

// Few messages that wait long are a load as well.
func TestScalingByWaitAndLatency(t *testing.T) {
	for name, c := range map[string]struct {
		load worker.Load
		want int
	}{
		"nothing":          {worker.Load{Min: 2, Max: 10, Current: 2}, 2},
		"10":               {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 10}, 2},
		"11":               {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 11}, 4},
		"50":               {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 50}, 4},
		"51":               {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 51}, 6},
		"100":              {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 100}, 6},
		"101":              {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 101}, 10},
		"old":              {worker.Load{Min: 2, Max: 10, Current: 2, Depth: 1, Oldest: 6 * time.Second}, 4},
		"slow handlers":    {worker.Load{Min: 2, Max: 10, Current: 4, Depth: 8, HandlerTime: 3 * time.Second}, 6},
		"old, but nothing": {worker.Load{Min: 2, Max: 10, Current: 4, Oldest: time.Minute}, 2},
	} {
		if got := worker.ByDepth(c.load); got != c.want {
			t.Errorf("%s: %d handlers, want %d", name, got, c.want)
		}
	}
}

func TestScalingStepsAndOwnPolicy(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var want atomic.Int64
		want.Store(100) // more than Max
		w := worker.New(r.broker, worker.Options{Concurrency: 4,
			Scaling: worker.Scaling{Min: 2, Max: 9, StepUp: 3, StepDown: 2,
				Interval: time.Second, Cooldown: 5 * time.Second, Policy: func(worker.Load) int { return int(want.Load()) }}})
		worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
		stop := start(t, w)
		time.Sleep(500 * time.Millisecond)
		see := func(when string, seconds int, n int) {
			t.Helper()
			time.Sleep(time.Duration(seconds) * time.Second)
			if got := w.Stats().Concurrency; got != n {
				t.Errorf("%s: %d handlers, want %d", when, got, n)
			}
		}
		see("at the start", 0, 4)
		see("one step up", 1, 7)
		see("never above Max", 5, 9)
		want.Store(-5) // less than Min
		see("in the cooldown", 4, 9)
		see("one step down", 2, 7)
		see("another", 1, 5)
		see("never below Min", 10, 2)
		mustStop(t, stop)
	})
}

func TestScalingSurvivesAPanickingPolicy(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 3, Scaling: worker.Scaling{Min: 1, Max: 9,
			Policy: func(worker.Load) int { panic("boom") }}})
		var g gauge
		worker.HandleRaw(w, topic, g.sleeper(time.Millisecond))
		stop := start(t, w)
		r.publish(topic, numbered(100))
		time.Sleep(time.Minute)
		if n := w.Stats().Concurrency; n != 3 || r.group(topic).Acked != 100 {
			t.Errorf("%d handlers and %d handled, want 3 and 100", n, r.group(topic).Acked)
		}
		mustStop(t, stop)
	})
}

// An idle worker asks the broker nothing: its idle handlers would have taken what waits.
func TestScalingAsksOnlyWhenBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := new(statsCounter)
		r := newRig(t, func(inner driver.Driver) driver.Driver { asked.Driver = inner; return asked }, ferry.Hooks{})
		w := worker.New(r.broker, worker.Options{Scaling: worker.Scaling{Max: 4}})
		var g gauge
		worker.HandleRaw(w, topic, g.sleeper(10*time.Second))
		stop := start(t, w)
		time.Sleep(time.Minute)
		if n := asked.n.Load(); n != 0 {
			t.Errorf("an idle worker asked %d times", n)
		}
		r.publish(topic, numbered(300))
		time.Sleep(10 * time.Second)
		if asked.n.Load() == 0 {
			t.Error("a busy worker never asked")
		}
		mustStop(t, stop)
	})
}

type statsCounter struct {
	driver.Driver
	n atomic.Int64
}

func (s *statsCounter) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	s.n.Add(1)
	return s.Driver.Stats(ctx, topic)
}

func TestScalingBadInput(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for name, o := range map[string]worker.Options{
			"negative":       {Scaling: worker.Scaling{Min: -1, Max: 2}},
			"no max":         {Scaling: worker.Scaling{Min: 2}},
			"swapped":        {Scaling: worker.Scaling{Min: 3, Max: 2}},
			"start outside":  {Concurrency: 5, Scaling: worker.Scaling{Min: 1, Max: 2}},
			"negative pause": {Scaling: worker.Scaling{Max: 2, Cooldown: -1}},
		} {
			w := worker.New(r.broker, o)
			worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error { return nil })
			if err := w.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		}
	})
}
