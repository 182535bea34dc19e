package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

var perKey = guard.Limit{Name: "key", Rule: guard.Rule{Limit: 2, Window: 10 * time.Second}}

// TestParkedMessagesKeepOrderAndAttempts: over its limit a key waits until the window opens; nothing else is touched.
// Lesson: L27
func TestParkedMessagesKeepOrderAndAttempts(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := &shaky{Store: memoryStore()}
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			seen.add("%s at %v, attempt %d, delivery %d", d.Body, r.elapsed().Round(time.Millisecond), d.Attempt, d.Deliveries)
			return nil
		}, worker.Options{}, []worker.Middleware{limiter.Middleware()})
		for i := range 5 {
			r.publish(fmt.Sprint("a", i), ferry.Key("a"))
		}
		r.publish("b0", ferry.Key("b"))
		r.until(time.Minute)
		var a, b []string
		for _, line := range seen.all() {
			if strings.HasPrefix(line, "a") {
				a = append(a, line)
			} else {
				b = append(b, line)
			}
		}
		equal(t, a, "a0 at 0s, attempt 1, delivery 1", "a1 at 0s, attempt 1, delivery 1",
			"a2 at 10.814s, attempt 1, delivery 1",
			"a3 at 15.814s, attempt 1, delivery 1", "a4 at 20.814s, attempt 1, delivery 1") // 0.814 s is the phase of the key
		equal(t, b, "b0 at 0s, attempt 1, delivery 1")
		if store.calls > 10 {
			t.Errorf("the store was asked %d times for 6 messages: they did not wait", store.calls)
		}
	})
}

// TestManyParkedMessagesDoNotSpin: those that wait come back spread over the time they need.
func TestManyParkedMessagesDoNotSpin(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := &shaky{Store: memoryStore()}
		limit := guard.Limit{Name: "all", Key: guard.Constant("x"), Rule: guard.Rule{Limit: 10, Window: time.Second}}
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{limit}}))(t)
		var handled atomic.Int64
		r.work(func(context.Context, *ferry.Delivery) error {
			handled.Add(1)
			return nil
		}, worker.Options{}, []worker.Middleware{limiter.Middleware()})
		const messages = 1000
		for i := range messages {
			r.publish(fmt.Sprint(i))
		}
		r.until(130 * time.Second)
		if n := handled.Load(); n != messages {
			t.Errorf("%d of %d handled at 10/s after 130 s", n, messages)
		}
		if store.calls > 20*messages { // a window that all come back to would make it 100
			t.Errorf("the store was asked %d times for %d messages", store.calls, messages)
		}
	})
}

func TestLimitedMessagesDropOrDie(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limit := perKey
		limit.Rule.Penalty = guard.Penalty{After: 2}
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{limit}, OnLimited: guard.Dead})
		r.work(func(context.Context, *ferry.Delivery) error {
			return nil
		}, worker.Options{}, []worker.Middleware{limiter.Middleware()})
		for i := range 6 {
			r.publish(fmt.Sprint(i), ferry.Key("a"))
		}
		r.until(time.Second)
		var reasons []driver.Reason
		for _, dl := range r.dead() {
			reasons = append(reasons, dl.Reason)
			if !contains(dl.Error, "limit key") {
				t.Errorf("the dead letter says %q", dl.Error)
			}
		}
		equal(t, reasons, driver.ReasonRateLimited, driver.ReasonRateLimited, driver.ReasonKeyBlocked,
			driver.ReasonKeyBlocked)
		if s := r.stats(); s.Acked != 2 {
			t.Errorf("%+v, want 2 acked", s)
		}
		if s := limiter.Stats(); s != (guard.Stats{Admitted: 2, Refused: 4, Limited: 2, Blocked: 2, Penalties: 1}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestParkedViolatorIsOneViolation: a message that comes back again and again is not a second violation.
func TestParkedViolatorIsOneViolation(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limit := perKey
		limit.Rule = guard.Rule{Limit: 1, Window: 10 * time.Minute, Penalty: guard.Penalty{After: 2}}
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{limit}})
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			seen.add("%s at %v", d.Body, r.elapsed().Round(time.Second))
			return nil
		},
			worker.Options{}, []worker.Middleware{limiter.Middleware()})
		r.publish("0", ferry.Key("a"))
		r.publish("1", ferry.Key("a"))
		r.until(time.Hour)
		equal(t, seen.all(), "0 at 0s", "1 at 10m1s") // with the phase of the key
		if s := limiter.Stats(); s.Limited < 10 || s.Penalties != 0 {
			t.Errorf("%+v, want many refusals of one message and no penalty", s)
		}
	})
}

func TestUnblockedKeyComesBackSoon(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		admin := must(guard.NewAdmin(store, "ann"))(t)
		if err := admin.Block(r.ctx, "key", "a", 24*time.Hour, "spam"); err != nil {
			t.Fatal(err)
		}
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error { seen.add("%s", d.Body); return nil },
			worker.Options{}, []worker.Middleware{limiter.Middleware()})
		r.publish("0", ferry.Key("a"))
		r.until(time.Minute)
		equal(t, seen.all())
		if err := admin.Unblock(r.ctx, "key", "a", "a mistake"); err != nil {
			t.Fatal(err)
		}
		r.until(time.Minute + guard.DefaultMaxPark)
		equal(t, seen.all(), "0")
	})
}

func TestGroupsHaveTheirOwnRules(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		var unknown journal
		limiter := newLimiter(t, guard.LimiterOptions{
			Limits: []guard.Limit{{
				Name: "user", Rule: guard.Rule{Limit: 1, Window: time.Minute},
				Groups: map[string]guard.Rule{"vip": {Limit: 3, Window: time.Minute}, "staff": {Unlimited: true}},
				Group:  func(_ context.Context, key string) string { return strings.TrimRight(key, "0123456789") },
			}},
			Hook: func(_ context.Context, e guard.Event) {
				if e.Kind == guard.EventUnknownGroup {
					unknown.add("%v", e.Err)
				}
			},
		})
		count := func(key string) (n int) {
			for range 10 {
				if limiter.Allow(r.ctx, &ferry.Message{Key: key}) == nil {
					n++
				}
			}
			return n
		}
		for key, want := range map[string]int{"7": 1, "vip1": 3, "vip2": 3, "staff1": 10, "nobody": 1} {
			if n := count(key); n != want {
				t.Errorf("%s: %d pass, want %d", key, n, want)
			}
		}
		if lines := unknown.all(); len(lines) != 10 || !contains(lines[0], `no group "nobody"`) {
			t.Errorf("unknown groups: %v", lines)
		}
		if err := limiter.SetRule("user", "vip", guard.Rule{Limit: 5, Window: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if n := count("vip1"); n != 2 {
			t.Errorf("%d more pass after the change, want 2", n)
		}
		wantError(t, limiter.SetRule("user", "gold", chat.Rule), driver.ErrNotFound, `no group "gold"`)
		wantError(t, limiter.SetRule("nobody", "", chat.Rule), driver.ErrNotFound, "no limit")
		wantError(t, limiter.SetRule("user", "vip", guard.Rule{Limit: 1}), driver.ErrInvalid, "window 0s")
	})
}

// TestThroughputCap: one constant key is a cap for a whole topic, beside the limits of users.
func TestThroughputCap(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{
			{Name: "billing", Key: guard.Constant("all"), Rule: guard.Rule{Limit: 50, Window: time.Second}},
			{Name: "user", Rule: guard.Rule{Limit: 1000, Window: time.Second}},
		}})
		var last time.Duration
		var handled atomic.Int64
		r.work(func(context.Context, *ferry.Delivery) error { handled.Add(1); last = r.elapsed(); return nil },
			worker.Options{Concurrency: 1}, []worker.Middleware{limiter.Middleware()})
		for i := range 500 {
			r.publish("x", ferry.Key(fmt.Sprint(i%100)))
		}
		r.until(20 * time.Second)
		if n := handled.Load(); n != 500 || last < 9*time.Second || last > 12*time.Second {
			t.Errorf("%d handled within %v at 50/s", n, last)
		}
	})
}

// TestReturnedWhenALaterLayerRefuses: what was not handled does not count.
func TestReturnedWhenALaterLayerRefuses(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "down"}))(t)
		if err := breaker.Force("down", guard.StateOpen); err != nil {
			t.Fatal(err)
		}
		r.work(func(context.Context, *ferry.Delivery) error {
			return nil
		}, worker.Options{}, guard.Layers{Limit: limiter, Breaker: breaker}.Middleware())
		r.publish("0", ferry.Key("a"))
		r.until(5 * time.Minute)
		if s, err := store.Status(r.ctx, "key", "a"); err != nil || s.Used != 0 {
			t.Errorf("%+v, %v; want nothing used", s, err)
		}
		if n := limiter.Stats().Admitted; n < 3 {
			t.Errorf("admitted %d times, want several", n)
		}
	})
}

// TestStoreAway: closed by default, nothing is burnt, and the store is not hammered; open on request.
func TestStoreAway(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				store := &shaky{Store: memoryStore()}
				store.fail(errAway)
				layers := guard.Layers{
					Limit:       must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{perKey}, FailOpen: open}))(t),
					Concurrency: must(guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "slots", Max: 1, FailOpen: open}))(t),
					Dedup:       must(guard.NewDedup(store, guard.DedupOptions{Name: "once", FailOpen: open}))(t),
				}
				var seen journal
				r.work(func(_ context.Context, d *ferry.Delivery) error {
					seen.add("%s attempt %d", d.Body, d.Attempt)
					return nil
				},
					worker.Options{}, layers.Middleware())
				for i := range 100 {
					r.publish("x", ferry.Key(fmt.Sprint(i)))
				}
				r.until(time.Minute)
				if n := len(seen.all()); open && n != 100 || !open && n != 0 {
					t.Fatalf("%d handled while the store was away", n)
				}
				if store.calls > 400 {
					t.Errorf("the store was asked %d times while it was away", store.calls)
				}
				store.fail(nil)
				r.until(90 * time.Second)
				for _, line := range seen.all() {
					if line != "x attempt 1" {
						t.Errorf("handled as %s", line)
					}
				}
				if s := r.stats(); s.Acked != 100 || s.Dead != 0 {
					t.Errorf("%+v, want all handled after the store came back", s)
				}
			})
		})
	}
}

func TestCheckCountsNothing(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{perKey}})
		m := &ferry.Message{Key: "a"}
		for range 5 {
			if err := limiter.Check(r.ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = limiter.Allow(r.ctx, m), limiter.Allow(r.ctx, m)
		var refusal *guard.Refusal
		if err := limiter.Check(r.ctx, m); !errors.As(err, &refusal) || refusal.After != 10*time.Second ||
			refusal.Key != "a" {
			t.Errorf("%v, want a refusal for 10 s", err)
		}
	})
}

func TestLimiterOptionsThatAreWrong(t *testing.T) {
	t.Parallel()
	rule := guard.Rule{Limit: 5, Window: time.Second}
	with := func(r guard.Rule) guard.LimiterOptions {
		return guard.LimiterOptions{Limits: []guard.Limit{{Name: "user", Rule: r}}}
	}
	for name, c := range map[string]struct {
		o    guard.LimiterOptions
		says string
	}{
		"no limits": {guard.LimiterOptions{}, "no limits"},
		"no name":   {guard.LimiterOptions{Limits: []guard.Limit{{Rule: rule}}}, "limit name"},
		"twice": {guard.LimiterOptions{Limits: []guard.Limit{{Name: "a", Rule: rule}, {Name: "a", Rule: rule}}},
			"two limits"},
		"zero limit":      {with(guard.Rule{Window: time.Second}), "limit 0"},
		"negative limit":  {with(guard.Rule{Limit: -1, Window: time.Second}), "limit -1"},
		"zero window":     {with(guard.Rule{Limit: 1}), "window 0s"},
		"negative window": {with(guard.Rule{Limit: 1, Window: -time.Second}), "window -1s"},
		"huge window":     {with(guard.Rule{Limit: guard.MaxLimit + 1, Window: time.Second}), "sliding window remembers"},
		"negative burst":  {with(guard.Rule{Limit: 1, Window: 1e9, Burst: -1}), "burst -1"},
		"penalty":         {with(guard.Rule{Limit: 1, Window: 1e9, Penalty: guard.Penalty{After: -1}}), "after -1"},
		"penalty max": {with(guard.Rule{Limit: 1, Window: 1e9, Penalty: guard.Penalty{After: 1, Block: 2e9, Max: 1e9}}),
			"shorter than the first"},
		"penalty factor": {with(guard.Rule{Limit: 1, Window: 1e9, Penalty: guard.Penalty{After: 1, Factor: 0.5}}),
			"factor 0.5"},
		"group": {guard.LimiterOptions{
			Limits: []guard.Limit{{Name: "a", Rule: rule, Groups: map[string]guard.Rule{"vip": {}}}}}, `group "vip"`},
		"unnamed group": {guard.LimiterOptions{
			Limits: []guard.Limit{{Name: "a", Rule: rule, Groups: map[string]guard.Rule{"": rule}}}}, "has no name"},
		"lookup of nobody": {guard.LimiterOptions{
			Limits: []guard.Limit{{Name: "a", Rule: rule, Group: func(context.Context, string) string { return "" }}}},
			"has none"},
		"template": {guard.LimiterOptions{Limits: []guard.Limit{{Name: "a", Rule: rule, Template: "{user}"}}},
			"{user} does not exist"},
		"both keys": {guard.LimiterOptions{
			Limits: []guard.Limit{{Name: "a", Rule: rule, Template: "{key}", Key: guard.ByKey}}}, "both"},
		"policy": {guard.LimiterOptions{Limits: []guard.Limit{{Name: "a", Rule: rule}}, OnLimited: 9}, "policy 9"},
		"groups of none": {guard.LimiterOptions{
			Limits: []guard.Limit{{Name: "a", Rule: rule, Groups: map[string]guard.Rule{"vip": rule}}}}, "set Group"},
		"park nothing": {guard.LimiterOptions{Limits: []guard.Limit{{Name: "a", Rule: rule}}, OnLimited: guard.Drop,
			MaxPark: time.Second}, "parks nothing"},
		"max park": {guard.LimiterOptions{Limits: []guard.Limit{{Name: "a", Rule: rule}}, MaxPark: -1}, "MaxPark"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := guard.NewLimiter(memoryStore(), c.o)
			wantError(t, err, driver.ErrInvalid, c.says)
		})
	}
	_, err := guard.NewLimiter(nil, with(rule))
	wantError(t, err, driver.ErrInvalid, "no store")
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	m := &ferry.Message{ID: "i", Key: "k", Topic: "t", Headers: map[string]string{"tenant": "acme"}}
	for text, want := range map[string]string{
		"{key}": "k", "{topic}/{header.tenant}": "t/acme", "all": "all", "a{id}b": "aib", "{header.none}": "",
	} {
		key, err := guard.Template(text)
		if err != nil || key(m) != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", "{", "}", "{}", "{key", "key}", "{header.}", "{body}"} {
		_, err := guard.Template(text)
		wantError(t, err, driver.ErrInvalid, "key template")
	}
}

func TestLongKeysAreHashed(t *testing.T) {
	t.Parallel()
	store := memoryStore()
	limiter := must(guard.NewLimiter(store,
		guard.LimiterOptions{Limits: []guard.Limit{
			{Name: "user", Template: "{header.user}", Rule: guard.Rule{Limit: 1, Window: time.Hour}}}}))(t)
	m := &ferry.Message{Headers: map[string]string{"user": strings.Repeat("x", 1<<16)}}
	var refusal *guard.Refusal
	if err := limiter.Allow(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := limiter.Allow(t.Context(), m); !errors.As(err, &refusal) || len(refusal.Key) != 71 {
		t.Errorf("%v, want a refusal by a hash", err)
	}
}

// TestKeysThatAreNoText are the same key after a restart.
func TestKeysThatAreNoText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 2 {
		d := openDir(t, dir)
		limiter := must(guard.NewLimiter(d,
			guard.LimiterOptions{Limits: []guard.Limit{{Name: "user", Template: "{header.user}",
				Rule: guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 1}}}}}))(t)
		m := &ferry.Message{Headers: map[string]string{"user": "\xff\xfe"}}
		for range 3 {
			_ = limiter.Allow(t.Context(), m)
		}
		var refusal *guard.Refusal
		if err := limiter.Check(t.Context(), m); !errors.As(err, &refusal) || refusal.Reason != driver.ReasonKeyBlocked {
			t.Errorf("round %d: %v, want it blocked", round, err)
		}
		admin := must(guard.NewAdmin(d, "ann"))(t)
		if s := must(admin.Status(t.Context(), "user", "\xff\xfe"))(t); s.Block == nil || s.Level != 1 {
			t.Errorf("round %d: %+v", round, s)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMaxKeys(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limiter := must(guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{MaxKeys: 100}),
			guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		for i := range 100 {
			if err := limiter.Allow(r.ctx, &ferry.Message{Key: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := limiter.Allow(r.ctx, &ferry.Message{Key: "one more"}); !errors.Is(err, driver.ErrFull) {
			t.Errorf("%v, want full", err)
		}
		r.until(time.Minute) // all windows are over: those keys are forgotten
		if err := limiter.Allow(r.ctx, &ferry.Message{Key: "one more"}); err != nil {
			t.Error(err)
		}
	})
}

// TestIdleKeysAreForgotten: a store that sees ever new keys does not grow without end.
func TestIdleKeysAreForgotten(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		s := guard.NewMemory(guard.MemoryOptions{MaxKeys: 5000}) // would refuse if it did
		limiter := must(guard.NewLimiter(s, guard.LimiterOptions{Limits: []guard.Limit{perKey}}))(t)
		for i := range 50_000 {
			if err := limiter.Allow(r.ctx, &ferry.Message{Key: fmt.Sprint(i)}); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
			if i%100 == 0 {
				time.Sleep(time.Second) // 10 s are remembered: 1,000 keys
			}
		}
		for i := range 20_000 {
			m, err := s.Begin(r.ctx, store.MarkRequest{Name: "once", ID: fmt.Sprint(i)})
			if err != nil || !m.Ours {
				t.Fatalf("mark %d: %+v, %v", i, m, err)
			}
			if err := s.Complete(r.ctx, store.MarkRequest{Name: "once", ID: fmt.Sprint(i), Token: m.Token,
				Window: 10 * time.Second}); err != nil {
				t.Fatal(err)
			}
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
	})
}
