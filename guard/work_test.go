package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

// TestConcurrencyByKey: two workers with one store never handle more of a tenant at once than it may, and all get done.
func TestConcurrencyByKey(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		running, most := map[string]*atomic.Int64{"a": {}, "b": {}}, map[string]*atomic.Int64{"a": {}, "b": {}}
		for range 2 {
			c := must(guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "tenant", Template: "{header.tenant}", Max: 3,
				MaxOf: func(key string) int {
					if key == "b" {
						return 1
					}
					return 0
				}}))(t)
			r.work(func(_ context.Context, d *ferry.Delivery) error {
				tenant := d.Headers["tenant"]
				n := running[tenant].Add(1)
				defer running[tenant].Add(-1)
				most[tenant].Store(max(most[tenant].Load(), n))
				time.Sleep(100 * time.Millisecond)
				return nil
			}, worker.Options{Concurrency: 16}, []worker.Middleware{c.Middleware()})
		}
		for i := range 60 {
			r.publish("x", ferry.Header("tenant", []string{"a", "b"}[i%2]))
		}
		r.until(30 * time.Second)
		if most["a"].Load() != 3 || most["b"].Load() != 1 {
			t.Errorf("at most %d of a and %d of b at once, want 3 and 1", most["a"].Load(), most["b"].Load())
		}
		if s := r.stats(); s.Acked != 60 {
			t.Errorf("%+v, want all handled", s)
		}
	})
}

// What a limit counts: each message that got a slot, and each refusal of one that did not.
func TestConcurrencyCounts(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		c := must(guard.NewConcurrency(memoryStore(),
			guard.ConcurrencyOptions{Name: "all", Key: guard.Constant("x"), Max: 1, OnBusy: guard.Drop}))(t)
		h := c.Middleware()(func(ctx context.Context, d *ferry.Delivery) error {
			if d.ID == "first" { // while it has the only slot
				refused := c.Middleware()(func(context.Context, *ferry.Delivery) error { return nil })
				if err := refused(ctx, &ferry.Delivery{Message: &ferry.Message{ID: "second"}}); err == nil {
					t.Error("two had the only slot")
				}
			}
			return nil
		})
		for _, id := range []string{"first", "third"} {
			if err := h(r.ctx, &ferry.Delivery{Message: &ferry.Message{ID: id}}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if got, want := c.Stats(), (guard.Stats{Admitted: 2, Refused: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestSlotsAreFreedHoweverAHandlerEnds.
func TestSlotsAreFreedHoweverAHandlerEnds(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		c := must(guard.NewConcurrency(memoryStore(),
			guard.ConcurrencyOptions{Name: "all", Key: guard.Constant("x"), Max: 1}))(t)
		var calls atomic.Int64
		r.work(func(context.Context, *ferry.Delivery) error {
			switch calls.Add(1) {
			case 1:
				panic("boom")
			case 2:
				return errDown
			case 3:
				return worker.Park(time.Second)
			}
			return nil
		}, worker.Options{}, []worker.Middleware{c.Middleware()}, worker.Retry(ferry.Delays(time.Second)))
		r.publish("x")
		r.until(time.Minute)
		if s := r.stats(); s.Acked != 1 || calls.Load() != 4 {
			t.Errorf("%+v after %d calls", s, calls.Load())
		}
	})
}

func TestBusyMessagesDie(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		c := must(guard.NewConcurrency(memoryStore(),
			guard.ConcurrencyOptions{Name: "all", Key: guard.Constant("x"), Max: 1, OnBusy: guard.Dead}))(t)
		r.work(func(context.Context, *ferry.Delivery) error {
			time.Sleep(time.Minute)
			return nil
		}, worker.Options{}, []worker.Middleware{c.Middleware()})
		r.publish("0")
		r.until(time.Second)
		r.publish("1")
		r.until(2 * time.Second)
		if dead := r.dead(); len(dead) != 1 || dead[0].Reason != driver.ReasonOverload {
			t.Errorf("%+v, want one, for overload", dead)
		}
		r.until(2 * time.Minute)
	})
}

// leased is a memory store that makes slots and marks leases, and can lose them.
type leased struct {
	guard.Store
	lost atomic.Bool
	away atomic.Bool
}

func (s *leased) Acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	if s.away.Load() {
		return store.Slot{}, errAway
	}
	if s.lost.Load() && r.Token != 0 {
		return store.Slot{Leased: true}, nil
	}
	slot, err := s.Store.Acquire(ctx, r)
	slot.Leased = true
	return slot, err
}

func (s *leased) Begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	if s.lost.Load() && r.Token != 0 {
		return store.Mark{Leased: true}, nil
	}
	m, err := s.Store.Begin(ctx, r)
	m.Leased = true
	return m, err
}

// TestLostSlotEndsTheHandler: without its slot a handler must not go on; the message comes again, unburnt.
func TestLostSlotEndsTheHandler(t *testing.T) {
	for name, lose := range map[string]func(s *leased, on bool){
		"taken":          func(s *leased, on bool) { s.lost.Store(on) },
		"store is away":  func(s *leased, on bool) { s.away.Store(on) },
		"nothing is off": func(*leased, bool) {},
	} {
		t.Run(name, func(t *testing.T) {
			back := map[string]time.Duration{"taken": 6500 * time.Millisecond, "store is away": 9 * time.Second,
				"nothing is off": 9 * time.Second}
			virtual(t, func(t *testing.T, r *rig) {
				store := &leased{Store: memoryStore()}
				c := must(guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "all", Max: 1, Lease: 3 * time.Second}))(t)
				var seen journal
				r.work(func(ctx context.Context, d *ferry.Delivery) error {
					select {
					case <-ctx.Done():
						seen.add("lost %v attempt %d", errors.Is(context.Cause(ctx), guard.ErrLost), d.Attempt)
						return ctx.Err()
					case <-time.After(20 * time.Second):
						seen.add("done attempt %d", d.Attempt)
						return nil
					}
				}, worker.Options{}, []worker.Middleware{c.Middleware()})
				r.publish("x")
				r.until(5 * time.Second)
				lose(store, true)
				r.until(back[name])
				lose(store, false)
				r.until(2 * time.Minute)
				want := []string{"lost true attempt 1", "done attempt 1"}
				if name == "nothing is off" {
					want = want[1:]
				}
				equal(t, seen.all(), want...)
			})
		})
	}
}

// TestDedupMarksAfterSuccess: a handler that failed runs again; one that succeeded does not, whatever is delivered.
// Lesson: R6, L25
func TestDedupMarksAfterSuccess(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		once := must(guard.NewDedup(memoryStore(),
			guard.DedupOptions{Name: "once", ID: func(d *ferry.Delivery) string { return d.Headers["order"] }}))(t)
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			seen.add("%s", d.Body)
			if string(d.Body) == "first" && d.Attempt == 1 {
				return errDown
			}
			return nil
		}, worker.Options{Concurrency: 1}, []worker.Middleware{once.Middleware()}, worker.Retry(ferry.Delays(time.Second)))
		r.publish("first", ferry.Header("order", "7"))
		r.until(10 * time.Second)
		r.publish("again", ferry.Header("order", "7"))
		r.publish("other", ferry.Header("order", "8"))
		r.publish("unnamed")
		r.publish("unnamed")
		r.until(23 * time.Hour)
		r.publish("late", ferry.Header("order", "7"))
		r.until(25 * time.Hour)
		r.publish("after the window", ferry.Header("order", "7"))
		r.until(26 * time.Hour)
		equal(t, seen.all(), "first", "first", "other", "unnamed", "unnamed", "after the window")
		if s := r.stats(); s.Acked != 7 || once.Stats().Duplicates != 2 {
			t.Errorf("%+v, %+v; want all acknowledged, 2 as duplicates", s, once.Stats())
		}
	})
}

// TestDedupForgetsTheOldest: more work than a store in this process remembers goes on: what was done first is
// forgotten, what was done last is known. Only work under way is not forgotten.
func TestDedupForgetsTheOldest(t *testing.T) {
	const remembered = 10
	s := guard.NewMemory(guard.MemoryOptions{MaxKeys: remembered})
	once := must(guard.NewDedup(s, guard.DedupOptions{Name: "once"}))(t)
	runs := 0
	handle := once.Middleware()(func(context.Context, *ferry.Delivery) error { runs++; return nil })
	deliver := func(i int) {
		t.Helper()
		d := &ferry.Delivery{Message: &ferry.Message{Topic: "t", ID: fmt.Sprint(i)}, Group: "g"}
		if err := handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * remembered {
		deliver(i)
	}
	for i := range remembered {
		deliver(2*remembered + i) // of these each is known
	}
	if runs != 3*remembered {
		t.Errorf("%d runs, want %d", runs, 3*remembered)
	}
	if deliver(0); runs != 3*remembered+1 {
		t.Error("the first is still known")
	}
	for i := range remembered {
		if _, err := s.Begin(t.Context(), store.MarkRequest{Name: "other", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Begin(t.Context(), store.MarkRequest{Name: "other", ID: "more"}); !errors.Is(err, driver.ErrFull) {
		t.Errorf("more under way than there is room for: %v", err)
	}
}

// TestDedupProtectsWorkInProgress: two deliveries of one id do not run at once.
func TestDedupProtectsWorkInProgress(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := &leased{Store: memoryStore()}
		var running, most, runs atomic.Int64
		for range 2 {
			once := must(guard.NewDedup(store,
				guard.DedupOptions{Name: "once", ID: func(*ferry.Delivery) string { return "x" }, Lease: 3 * time.Second}))(t)
			r.work(func(context.Context, *ferry.Delivery) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				runs.Add(1)
				time.Sleep(10 * time.Second)
				return nil
			}, worker.Options{}, []worker.Middleware{once.Middleware()})
		}
		for i := range 10 {
			r.publish(fmt.Sprint(i))
		}
		r.until(time.Minute)
		if s := r.stats(); most.Load() != 1 || runs.Load() != 1 || s.Acked != 10 {
			t.Errorf("%d at once, %d runs, %+v; want 1, 1 and 10 acked", most.Load(), runs.Load(), s)
		}
	})
}

// TestDedupLostWhileRunning: the handler's context ends, and the message comes again, unburnt.
func TestDedupLostWhileRunning(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := &leased{Store: memoryStore()}
		once := must(guard.NewDedup(store, guard.DedupOptions{Name: "once", Lease: 3 * time.Second}))(t)
		var seen journal
		r.work(func(ctx context.Context, d *ferry.Delivery) error {
			select {
			case <-ctx.Done():
				store.lost.Store(false)
				seen.add("lost attempt %d", d.Attempt)
				return ctx.Err()
			case <-time.After(20 * time.Second):
				seen.add("done attempt %d", d.Attempt)
				return nil
			}
		}, worker.Options{}, []worker.Middleware{once.Middleware()})
		store.lost.Store(true)
		r.publish("x")
		r.until(time.Minute)
		equal(t, seen.all(), "lost attempt 1", "done attempt 1")
	})
}

func TestDedupIDs(t *testing.T) {
	t.Parallel()
	d := &ferry.Delivery{Message: &ferry.Message{Topic: "t", ID: "1"}, Group: "g"}
	if got := guard.ByDedupID(d); got != "t/g/i/1" {
		t.Errorf("by id: %s", got)
	}
	d.DedupID = "1"
	if got := guard.ByDedupID(d); got != "t/g/d/1" {
		t.Errorf("by dedup id: %s", got)
	}
}

func TestWorkOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]guard.ConcurrencyOptions{
		"limit name": {Max: 1}, "of 0": {Name: "a"}, "lease 1ms": {Name: "a", Max: 1, Lease: time.Millisecond},
		"policy 5": {Name: "a", Max: 1, OnBusy: 5}, "MaxPark": {Name: "a", Max: 1, MaxPark: -1},
		"{x}": {Name: "a", Max: 1, Template: "{x}"},
	} {
		_, err := guard.NewConcurrency(memoryStore(), o)
		wantError(t, err, driver.ErrInvalid, says)
	}
	for says, o := range map[string]guard.DedupOptions{
		"dedup name": {}, "window -1": {Name: "a", Window: -1}, "lease 1ms": {Name: "a", Lease: time.Millisecond},
	} {
		_, err := guard.NewDedup(memoryStore(), o)
		wantError(t, err, driver.ErrInvalid, says)
	}
	_, err := guard.NewConcurrency(nil, guard.ConcurrencyOptions{Name: "a", Max: 1})
	wantError(t, err, driver.ErrInvalid, "no store")
	_, err = guard.NewDedup(nil, guard.DedupOptions{Name: "a"})
	wantError(t, err, driver.ErrInvalid, "no store")
}
