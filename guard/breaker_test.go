package guard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

var errDown = errors.New("billing is down")

// TestBreakerLeavesADownstreamAlone: it opens, messages wait without burning attempts, probes find that it is back.
// Lesson: L34
func TestBreakerLeavesADownstreamAlone(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var states journal
		breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "billing", Failures: 3, Open: 10 * time.Second, Probes: 2,
			Hook: func(_ context.Context, e guard.Event) {
				if e.Kind == guard.EventState {
					states.add("%s at %v", e.State, r.elapsed().Truncate(time.Second))
				}
			}}))(t)
		var calls journal
		var attempts atomic.Int64
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			calls.add("%v", r.elapsed().Truncate(time.Second))
			attempts.Store(max(attempts.Load(), int64(d.Attempt)))
			if r.elapsed() < 35*time.Second {
				return errDown
			}
			return nil
		}, worker.Options{Concurrency: 1}, []worker.Middleware{breaker.Middleware()}, worker.Retry(ferry.Delays(time.Second)),
			worker.MaxAttempts(10))
		for i := range 50 {
			r.publish("x", ferry.Key(fmt.Sprint(i)))
		}
		r.until(31 * time.Second)
		if n := len(calls.all()); n > 3+3 {
			t.Errorf("%d calls to a downstream that is down: %v", n, calls.all())
		}
		r.until(2 * time.Minute)
		if s := r.stats(); s.Acked != 50 || s.Dead != 0 {
			t.Errorf("%+v, want all handled in the end", s)
		}
		if n := attempts.Load(); n > 5 {
			t.Errorf("a message needed %d attempts: waiting burnt them", n)
		}
		all := states.all()
		if len(all) < 4 || all[0] != "open at 0s" || all[len(all)-1][:6] != "closed" || all[len(all)-2][:9] != "half_open" {
			t.Errorf("states: %v", all)
		}
	})
}

// TestHalfOpenAdmitsExactlyItsProbes: the others wait until the probes are back.
// Lesson: L34
func TestHalfOpenAdmitsExactlyItsProbes(t *testing.T) {
	for _, probes := range []int{1, 3} {
		t.Run(fmt.Sprint(probes), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				breaker := must(guard.NewBreaker(
					guard.BreakerOptions{Name: "billing", Failures: 1, Open: 10 * time.Second, Probes: probes}))(t)
				var running, most, after atomic.Int64
				r.work(func(context.Context, *ferry.Delivery) error {
					if r.elapsed() < time.Second {
						return worker.RetryAfter(errDown, time.Second)
					}
					n := running.Add(1)
					defer running.Add(-1)
					if r.elapsed() < 14*time.Second { // the probes, which take 5 s
						most.Store(max(most.Load(), n))
						time.Sleep(5 * time.Second)
					} else {
						after.Add(1)
					}
					return nil
				}, worker.Options{Concurrency: 64}, []worker.Middleware{breaker.Middleware()})
				r.publish("opens it")
				r.until(500 * time.Millisecond)
				for i := range 40 {
					r.publish("x", ferry.Key(fmt.Sprint(i)))
				}
				r.until(12 * time.Second)
				if n := running.Load(); n != int64(probes) {
					t.Errorf("%d probes run, want %d", n, probes)
				}
				r.until(time.Minute)
				if most.Load() != int64(probes) || after.Load() != 41-int64(probes) {
					t.Errorf("%d probes at once and %d after them, want %d and %d", most.Load(), after.Load(), probes, 41-probes)
				}
			})
		})
	}
}

// TestWhatCountsAsAFailure lists what opens a breaker and what does not.
func TestWhatCountsAsAFailure(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(worker.ErrStopping)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		open bool
	}{
		"error":             {err: errDown, open: true},
		"transient":         {err: worker.Transient(errDown), open: true},
		"retry after":       {err: worker.RetryAfter(errDown, time.Second), open: true},
		"timeout":           {err: fmt.Errorf("call: %w", context.DeadlineExceeded), open: true},
		"503":               {err: guard.Classify(&guard.StatusError{Status: 503}), open: true},
		"404":               {err: guard.Classify(&guard.StatusError{Status: 404})},
		"429":               {err: guard.Classify(&guard.StatusError{Status: 429, RetryAfter: time.Second})},
		"fatal":             {err: worker.Fatal(errDown)},
		"drop":              {err: worker.Drop(errDown)},
		"park":              {err: worker.Park(time.Second)},
		"cancelled":         {err: context.Canceled},
		"the worker stops":  {ctx: cancelled, err: errDown},
		"refused by others": {err: &guard.Refusal{Layer: "limit"}},
		"nothing":           {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "b", Failures: 2}))(t)
			h := breaker.Middleware()(func(context.Context, *ferry.Delivery) error { return c.err })
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			for range 3 {
				_ = h(ctx, &ferry.Delivery{Message: &ferry.Message{}})
			}
			if got := breaker.Status()[0].State == guard.StateOpen; got != c.open {
				t.Errorf("open: %v, want %v", got, c.open)
			}
		})
	}
}

// TestProbeThatDiesReportsBack: a panic or runtime.Goexit is a failure, and keeps no probe for ever.
func TestProbeThatDiesReportsBack(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "b", Failures: 1, Open: time.Second}))(t)
		deaths := []func(){func() { panic("boom") }, runtime.Goexit}
		var calls atomic.Int64
		r.work(func(context.Context, *ferry.Delivery) error {
			if n := calls.Add(1); int(n) <= 4 {
				deaths[n%2]()
			}
			return nil
		}, worker.Options{}, []worker.Middleware{breaker.Middleware()}, worker.Retry(ferry.Delays(time.Second)),
			worker.MaxAttempts(10))
		r.publish("x")
		r.until(time.Minute)
		if s := r.stats(); s.Acked != 1 || calls.Load() != 5 {
			t.Errorf("%+v after %d calls, want it handled at the fifth", s, calls.Load())
		}
	})
}

func TestBreakerByRatio(t *testing.T) {
	t.Parallel()
	breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "b", Failures: 100, Ratio: 0.5, MinRequests: 10}))(t)
	n := 0
	h := breaker.Middleware()(func(context.Context, *ferry.Delivery) error {
		if n++; n%2 == 0 {
			return errDown
		}
		return nil
	})
	for i := range 10 {
		_ = h(t.Context(), &ferry.Delivery{Message: &ferry.Message{}})
		if state := breaker.Status()[0].State; (state == guard.StateOpen) != (i == 9) {
			t.Errorf("%s after %d", state, i+1)
		}
	}
}

// TestBreakersByKeyAreApart, and their number is bounded.
func TestBreakersByKeyAreApart(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		breaker := must(guard.NewBreaker(
			guard.BreakerOptions{Name: "shop", Key: guard.ByKey, Failures: 1, MaxBreakers: 10}))(t)
		h := breaker.Middleware()(func(_ context.Context, d *ferry.Delivery) error {
			if d.Key == "bad" {
				return errDown
			}
			return nil
		})
		call := func(key string) error { return h(r.ctx, &ferry.Delivery{Message: &ferry.Message{Key: key}}) }
		_ = call("bad")
		var refusal *guard.Refusal
		if err := call("bad"); !errors.As(err, &refusal) || refusal.Reason != driver.ReasonBreakerOpen ||
			refusal.Name != "shop/bad" {
			t.Errorf("%v, want the breaker of bad open", err)
		}
		for i := range 100 {
			if err := call(fmt.Sprint("good", i)); err != nil {
				t.Fatal(err)
			}
		}
		all := breaker.Status()
		if len(all) > 10 || all[0].Name != "shop/bad" || all[0].State != guard.StateOpen {
			t.Errorf("%d breakers, the first is %+v; want at most 10, and the open one kept", len(all), all[0])
		}
	})
}

// TestForcedBreakers: an operator opens a breaker in two processes at once, through the store.
func TestForcedBreakers(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		admin := must(guard.NewAdmin(store, "ann"))(t)
		var handlers []worker.Handler
		var breakers []*guard.Breaker
		for _, instance := range []string{"one", "two"} {
			b := must(guard.NewBreaker(guard.BreakerOptions{Name: "billing", Store: store, Instance: instance}))(t)
			breakers = append(breakers, b)
			handlers = append(handlers, b.Middleware()(func(context.Context, *ferry.Delivery) error { return nil }))
		}
		passes := func(want bool) {
			t.Helper()
			for i, h := range handlers {
				if err := h(r.ctx, &ferry.Delivery{Message: &ferry.Message{}}); (err == nil) != want {
					t.Errorf("process %d at %v: %v, want it to pass: %v", i+1, r.elapsed(), err, want)
				}
			}
		}
		passes(true)
		if err := admin.ForceBreaker(r.ctx, "billing", guard.StateOpen, "maintenance"); err != nil {
			t.Fatal(err)
		}
		r.until(time.Second)
		passes(false)
		r.until(2 * time.Second)
		passes(false)
		all := must(admin.Breakers(r.ctx))(t)
		if len(all) != 2 || all[0].Instance != "one" || all[0].State != guard.StateOpen || !all[1].Forced {
			t.Errorf("reported: %+v", all)
		}
		if err := admin.ForceBreaker(r.ctx, "billing", "", "done"); err != nil {
			t.Fatal(err)
		}
		r.until(3 * time.Second)
		passes(true)
		if err := breakers[0].Force("billing", guard.StateHalfOpen); err == nil {
			t.Error("forced to be half open")
		}
		wantError(t, admin.ForceBreaker(r.ctx, "billing", "ajar", "x"), driver.ErrInvalid, `"ajar"`)
		wantError(t, admin.ForceBreaker(r.ctx, "", guard.StateOpen, "x"), driver.ErrInvalid, "breaker name")
		wantError(t, admin.ForceBreaker(r.ctx, "billing", guard.StateOpen, ""), driver.ErrInvalid, "reason")
	})
}

func TestBreakerOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]guard.BreakerOptions{
		"breaker name":  {},
		"negative":      {Name: "b", Failures: -1},
		"time is":       {Name: "b", Open: -1},
		"ratio 2":       {Name: "b", Ratio: 2},
		"policy 7":      {Name: "b", OnOpen: 7},
		"too large":     {Name: "b", Probes: 1 << 31},
		"{x} does not ": {Name: "b", Template: "{x}"},
		"or Interval":   {Name: "b", MinRequests: 10},
		"MinRequests":   {Name: "b", Interval: time.Minute},
		"MaxBreakers":   {Name: "b", MaxBreakers: 10},
	} {
		_, err := guard.NewBreaker(o)
		wantError(t, err, driver.ErrInvalid, says)
	}
}

func TestHooksMayPanicAndAsk(t *testing.T) {
	t.Parallel()
	var breaker *guard.Breaker
	told := 0
	breaker = must(guard.NewBreaker(guard.BreakerOptions{Name: "b", Failures: 1, Hook: func(context.Context, guard.Event) {
		told += len(breaker.Status())
		panic("a hook")
	}}))(t)
	h := breaker.Middleware()(func(context.Context, *ferry.Delivery) error { return errDown })
	_ = h(t.Context(), &ferry.Delivery{Message: &ferry.Message{}})
	_ = h(t.Context(), &ferry.Delivery{Message: &ferry.Message{}})
	if told != 3 {
		t.Errorf("the hook was told %d times, want admitted, state and open", told)
	}
}
