package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// chat is the limit of the timelines: 5 messages in 10 s, 3 violations block for an hour.
var chat = guard.Limit{Name: "user", Template: "{header.user}",
	Rule: guard.Rule{Limit: 5, Window: 10 * time.Second, Penalty: guard.Penalty{After: 3}}}

func newLimiter(t *testing.T, o guard.LimiterOptions) *guard.Limiter {
	t.Helper()
	if len(o.Limits) == 0 {
		o.Limits = []guard.Limit{chat}
	}
	return must(guard.NewLimiter(memoryStore(), o))(t)
}

// timeline is what a user sends when, and what becomes of it: "ok", "limited", "blocked", or "penalty" for the one that
// causes a block.
type timeline []struct {
	at   time.Duration
	want string
}

var timelines = map[string]timeline{
	"normal user": {{0, "ok"}, {5 * time.Second, "ok"}, {12 * time.Second, "ok"}, {40 * time.Second, "ok"}},
	"excited user": {
		{0, "ok"}, {0, "ok"}, {0, "ok"}, {0, "ok"}, {0, "ok"},
		{1 * time.Second, "limited"}, {2 * time.Second, "limited"}, {11 * time.Second, "ok"},
		{11 * time.Second, "ok"}, {11 * time.Second, "ok"}, {11 * time.Second, "ok"}, {11 * time.Second, "ok"},
		// the first row does not count
		{12 * time.Second, "limited"}, {13 * time.Second, "limited"}, {22 * time.Second, "ok"},
	},
	"robot": {
		{0, "ok"}, {0, "ok"}, {0, "ok"}, {0, "ok"}, {0, "ok"},
		{10 * time.Millisecond, "limited"}, {20 * time.Millisecond, "limited"}, {30 * time.Millisecond, "penalty"},
		{40 * time.Millisecond, "blocked"}, {50 * time.Millisecond, "blocked"}, {30 * time.Minute, "blocked"},
		{time.Hour + 29*time.Millisecond, "blocked"}, {time.Hour + 30*time.Millisecond, "ok"},
	},
}

// TestTimelinesOfPublishers runs them on the publisher's side: a refused publish says when to try again.
func TestTimelinesOfPublishers(t *testing.T) {
	for name, steps := range timelines {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, _ *rig) {
				limiter := newLimiter(t, guard.LimiterOptions{})
				r := newRig(t, ferry.Hooks{Authorize: limiter.Authorize})
				for i, step := range steps {
					r.until(step.at)
					penalties := limiter.Stats().Penalties
					_, err := ferry.Publish(r.ctx, r.broker, topic, "hi", ferry.Header("user", "u"))
					if got := outcome(t, err, limiter.Stats().Penalties > penalties); got != step.want {
						t.Errorf("message %d at %v: %s, want %s (%v)", i+1, step.at, got, step.want, err)
					}
					if _, err := ferry.Publish(r.ctx, r.broker, topic, "hi",
						ferry.Header("user", fmt.Sprint("another", i))); err != nil {
						t.Errorf("another user at %v: %v", step.at, err)
					}
				}
			})
		})
	}
}

func outcome(t *testing.T, err error, penalty bool) string {
	t.Helper()
	var refusal *guard.Refusal
	switch {
	case err == nil:
		return "ok"
	case !errors.Is(err, ferry.ErrRefused) || !errors.As(err, &refusal) || refusal.After <= 0:
		t.Errorf("%v is no refusal that says when to try again", err)
	case penalty:
		return "penalty"
	case refusal.Reason == driver.ReasonKeyBlocked:
		return "blocked"
	}
	return "limited"
}

// TestTimelinesOfWorkers runs them on the worker's side, where what is over the limit is dropped.
func TestTimelinesOfWorkers(t *testing.T) {
	for name, steps := range timelines {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var seen journal
				limiter := newLimiter(t, guard.LimiterOptions{OnLimited: guard.Drop, Hook: func(_ context.Context, e guard.Event) {
					seen.add("%s", e.Kind)
				}})
				r.work(func(context.Context, *ferry.Delivery) error {
					return nil
				}, worker.Options{}, []worker.Middleware{limiter.Middleware()})
				var want []string
				events := map[string][]string{"ok": {"admitted"}, "limited": {"limited"}, "blocked": {"blocked"},
					"penalty": {"limited", "penalized"}}
				for _, step := range steps {
					r.until(step.at)
					r.publish("hi", ferry.Header("user", "u"), ferry.Key("u"))
					want = append(want, events[step.want]...)
				}
				r.until(2 * time.Hour)
				equal(t, seen.all(), want...)
				if s := r.stats(); s.Ready+s.Waiting+s.Inflight+s.Dead != 0 {
					t.Errorf("%+v, want all handled or dropped", s)
				}
			})
		})
	}
}

// TestSlowAttack shows what an exact window never sees: one message every 2 s is within the limit, but each takes 10 s.
// The concurrency limit and the timeout contain it: the others do not notice.
func TestSlowAttack(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		t.Run(fmt.Sprint("guarded ", guarded), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				limiter := newLimiter(t, guard.LimiterOptions{})
				layers := guard.Layers{Limit: limiter}
				opts := []worker.HandlerOption{worker.Retry(ferry.Delays(time.Hour))}
				if guarded {
					layers.Concurrency = must(guard.NewConcurrency(memoryStore(),
						guard.ConcurrencyOptions{Name: "user", Template: "{header.user}", Max: 1}))(t)
					opts = append(opts, worker.Timeout(3*time.Second))
				}
				var worst time.Duration
				r.work(func(ctx context.Context, d *ferry.Delivery) error {
					if d.Headers["user"] == "slow" {
						select {
						case <-time.After(10 * time.Second):
							return nil
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					worst = max(worst, time.Since(d.PublishedAt))
					return nil
				}, worker.Options{Concurrency: 4}, layers.Middleware(), opts...)
				for i := range 30 {
					r.until(time.Duration(i) * 2 * time.Second)
					r.publish("slow", ferry.Header("user", "slow"))
					r.publish("quick", ferry.Header("user", "normal"))
				}
				r.until(2 * time.Minute)
				if guarded && worst > 100*time.Millisecond {
					t.Errorf("a normal user waited %v behind the slow one", worst)
				}
				if !guarded && worst < 5*time.Second {
					t.Errorf("without guards a normal user waited %v: the test shows nothing", worst)
				}
				if s := limiter.Stats(); s.Limited+s.Blocked > 0 && !guarded {
					t.Errorf("%+v: the window saw the attack", s)
				}
			})
		})
	}
}
