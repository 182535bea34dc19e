package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// reset forgets how many were counted at once.
func (g *gauge) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = g.now
}

func (g *gauge) highest() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

// The number of handlers follows SetConcurrency, beyond the one a worker began with too; a handler's own bound stays.
func TestSetConcurrency(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var free, bound gauge
		w := worker.New(r.broker, worker.Options{Concurrency: 2})
		worker.HandleRaw(w, topic, free.sleeper(time.Second))
		worker.HandleRaw(w, "bounded", bound.sleeper(time.Second), worker.Concurrency(3))
		r.publish(topic, numbered(400))
		r.publish("bounded", numbered(100))
		set := func(n int) {
			t.Helper()
			if err := w.SetConcurrency(n); err != nil {
				t.Fatal(err)
			}
			pause(2500 * time.Millisecond) // what ran has ended
			free.reset()
			bound.reset()
			pause(3500 * time.Millisecond) // to an instant at which handlers end: others start at once
			if s := w.Stats(); s.Concurrency != n || s.Running != n {
				t.Errorf("%d of %d handlers run, want %d", s.Running, s.Concurrency, n)
			}
		}
		if err := w.SetConcurrency(4); err != nil { // before Run
			t.Fatal(err)
		}
		stop := start(t, w)
		pause(500 * time.Millisecond)
		if n := w.Stats().Running; n != 4 {
			t.Errorf("%d run at the start, want 4", n)
		}
		set(20)
		if free.highest() < 17 || bound.highest() > 3 {
			t.Errorf("at most %d and %d ran at once, want 17 and 3", free.highest(), bound.highest())
		}
		set(1)
		if free.highest()+bound.highest() > 2 {
			t.Errorf("%d and %d ran at once, want 1", free.highest(), bound.highest())
		}
		set(8)
		mustStop(t, stop)
		if err := w.SetConcurrency(3); !errors.Is(err, ferry.ErrClosed) {
			t.Errorf("after the stop: %v", err)
		}
		if g := r.group(topic); g.Redelivered != 0 || g.Inflight != 0 {
			t.Errorf("%+v", g)
		}
	})
}

func TestSetConcurrencyIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		plain, scaled := worker.New(r.broker, worker.Options{}),
			worker.New(r.broker, worker.Options{Scaling: worker.Scaling{Max: 4}})
		for _, n := range []int{0, -1} {
			if err := plain.SetConcurrency(n); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("SetConcurrency(%d): %v", n, err)
			}
		}
		if err := scaled.SetConcurrency(2); !errors.Is(err, ferry.ErrConflict) {
			t.Errorf("with Scaling: %v", err)
		}
		if plain.Stats().Concurrency != 16 || scaled.Stats().Concurrency != 1 {
			t.Errorf("what was refused changed something")
		}
	})
}
