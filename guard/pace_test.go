package guard_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

var fiveInTen = guard.Limit{Name: "user", Rule: guard.Rule{Limit: 5, Window: 10 * time.Second}}

// TestKeysThatAreLimitedTogetherAreNoHerd: a hundred keys whose windows open at the same moment are served evenly, each
// at the rate of its limit.
func TestKeysThatAreLimitedTogetherAreNoHerd(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		const keys, messages, step = 100, 12, 2 * time.Second
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{fiveInTen}})
		served := make(map[string][]time.Duration)
		tenths := make(map[time.Duration]int)
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			served[d.Key] = append(served[d.Key], r.elapsed())
			tenths[r.elapsed().Truncate(100*time.Millisecond)]++
			return nil
		}, worker.Options{Concurrency: 1}, []worker.Middleware{limiter.Middleware()})
		for i := range keys * messages {
			r.publish("x", ferry.Key(fmt.Sprint(i%keys)))
		}
		r.until(time.Minute)
		for at, n := range tenths {
			if at > time.Second && n > 4*keys/20 { // a hundred in two seconds are five in a tenth
				t.Errorf("%d messages at %v: a herd", n, at)
			}
		}
		for key, times := range served {
			if len(times) != messages {
				t.Fatalf("key %s: %d messages, want %d", key, len(times), messages)
			}
			for i := 6; i < messages; i++ {
				if gap := times[i] - times[i-1]; gap != step {
					t.Errorf("key %s: message %d comes %v after the one before it, want %v", key, i, gap, step)
				}
			}
		}
	})
}

// TestKeyThatCaughtUpIsNotPaced: once nothing of it waits, a key is held to its limit only.
func TestKeyThatCaughtUpIsNotPaced(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{fiveInTen}})
		var took []time.Duration
		r.work(func(_ context.Context, d *ferry.Delivery) error {
			took = append(took, time.Since(d.PublishedAt))
			return nil
		}, worker.Options{}, []worker.Middleware{limiter.Middleware()})
		for range 6 {
			r.publish("x", ferry.Key("a"))
		}
		r.until(12 * time.Second) // the sixth has passed
		r.publish("y", ferry.Key("a"))
		r.publish("z", ferry.Key("a"))
		r.until(13 * time.Second)
		if len(took) != 8 || took[6] != 0 || took[7] != 0 {
			t.Errorf("waits %v, want none for the last two of 8", took)
		}
	})
}

// TestWhitelistedKeyIsNotPaced: an operator's word holds for what waits, too.
func TestWhitelistedKeyIsNotPaced(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		store := memoryStore()
		limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{fiveInTen}}))(t)
		handled := 0
		r.work(func(context.Context, *ferry.Delivery) error { handled++; return nil }, worker.Options{},
			[]worker.Middleware{limiter.Middleware()})
		for range 100 {
			r.publish("x", ferry.Key("a"))
		}
		r.until(time.Second)
		if err := must(guard.NewAdmin(store, "ann"))(t).Whitelist(r.ctx, "user", "a", "a partner"); err != nil {
			t.Fatal(err)
		}
		r.until(13 * time.Second) // the turn of the one that waits
		if handled != 100 {
			t.Errorf("%d of 100 handled", handled)
		}
	})
}

// TestRobotThatWaitsIsBlocked: a key whose messages wait in order is blocked, too, if it goes on writing too fast. What
// was written stays, and is handled after the block, for which it is not blocked again.
func TestRobotThatWaitsIsBlocked(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limit := fiveInTen
		limit.Rule.Penalty = guard.Penalty{After: 3}
		var blocked journal
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{limit},
			Hook: func(_ context.Context, e guard.Event) {
				if e.Kind == guard.EventPenalized {
					blocked.add("%s after %v", e.Key, r.elapsed().Truncate(10*time.Second))
				}
			}})
		var seen journal
		r.work(func(_ context.Context, d *ferry.Delivery) error { seen.add("%s", d.Body); return nil },
			worker.Options{}, []worker.Middleware{limiter.Middleware()})
		for i := range 50 {
			r.until(time.Duration(i) * 100 * time.Millisecond)
			r.publish(fmt.Sprint(i), ferry.Key("robot"))
		}
		r.until(30 * time.Minute)
		equal(t, blocked.all(), "robot after 20s")
		equal(t, seen.all(), "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
		if s := r.stats(); s.Ready+s.Waiting+s.Inflight != 39 {
			t.Errorf("%+v, want 39 messages that wait for the end of the block", s)
		}
		r.until(2 * time.Hour)
		if n := len(seen.all()); n != 50 || len(blocked.all()) != 1 {
			t.Errorf("%d handled after the block, and blocks: %v", n, blocked.all())
		}
	})
}

// TestBacklogBlocksNobody: a user who writes twice a minute is not blocked because nobody handled it for an hour.
func TestBacklogBlocksNobody(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		limit := fiveInTen
		limit.Rule.Penalty = guard.Penalty{After: 2}
		limiter := newLimiter(t, guard.LimiterOptions{Limits: []guard.Limit{limit}})
		handled := 0
		for i := range 130 {
			if i == 120 {
				r.work(func(context.Context, *ferry.Delivery) error { handled++; return nil },
					worker.Options{}, []worker.Middleware{limiter.Middleware()})
			}
			r.until(time.Duration(i) * 30 * time.Second)
			r.publish("x", ferry.Key("calm"))
		}
		r.until(70 * time.Minute)
		if s := limiter.Stats(); handled != 130 || s.Limited == 0 || s.Penalties != 0 {
			t.Errorf("%d handled, %+v; want all of 130, late and without a penalty", handled, s)
		}
	})
}
