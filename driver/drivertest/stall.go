package drivertest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// A machine that stalls makes leases end and delays late. In real time nothing can be said about a driver then, so that a case which
// failed while the machine stalled is tried again.
const (
	stallTick  = 20 * time.Millisecond
	stallProbe = 5 // ticks
	stalled    = 150 * time.Millisecond
	stallTries = 5
)

// patiently runs one case in real time. A failure without a stall counts at once.
func (h Harness) patiently(t *testing.T, c Case) {
	t.Helper()
	for try := 1; ; try++ {
		var w *stallWatch
		r := &recorder{TB: t}
		r.run(func(tb testing.TB) {
			x := newT(tb, h)
			w = watchStalls(x)
			tb.Cleanup(w.stop) // before the driver is closed
			c.Run(x)
			x.balanced()
		})
		switch {
		case len(r.complaints) == 0 && r.skipped != "":
			t.Skip(r.skipped)
		case len(r.complaints) == 0:
			return
		case try < stallTries && w != nil && w.longest > stalled:
			t.Logf("the machine stalled for %v, so it is tried again: %q", w.longest, r.complaints)
			continue
		}
		for _, text := range r.complaints {
			t.Error(text)
		}
		return
	}
}

// stallWatch measures how long this process, or the backend, did not react at all.
type stallWatch struct {
	longest time.Duration // read it after stop
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

func watchStalls(t *T) *stallWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w, d := &stallWatch{cancel: cancel}, t.Driver
	w.done.Go(func() {
		tick := time.NewTicker(stallTick)
		defer tick.Stop()
		for n := 1; ctx.Err() == nil; n++ {
			before := time.Now()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			w.longest = max(w.longest, time.Since(before)-stallTick)
			if n%stallProbe == 0 {
				before = time.Now()
				_, _ = d.Topics(ctx) // a case may have closed it: that is quick
				w.longest = max(w.longest, time.Since(before))
			}
		}
	})
	return w
}

func (w *stallWatch) stop() {
	w.cancel()
	w.done.Wait()
}
