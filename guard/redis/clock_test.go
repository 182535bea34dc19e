package redis_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A server whose clock was set back by an hour holds up nobody for an hour, and admits no more than the rule says
// meanwhile.
func TestClockIsSetBack(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]guard.Rule{
		"window": {Limit: 5, Window: 2 * time.Second},
		"bucket": {Limit: 5, Window: 2 * time.Second, Burst: 5},
	} {
		for _, before := range []int{3, 5} {
			setBack(t, name, rule, before)
		}
	}
}

// setBack sets the clock back after so many messages.
func setBack(t *testing.T, name string, rule guard.Rule, before int) {
	t.Run(fmt.Sprint(name, before), func(t *testing.T) {
		t.Parallel()
		prefix := "t" + rand.Text()
		s := open(t, redistest.Shared(t).URL(), prefix)
		defer func() { _ = s.Close(context.Background()) }()
		take := func() guard.Verdict {
			v, err := s.Take(t.Context(), store.Take{Items: []store.Item{{Limit: "user", Key: "k", Rule: &rule}}})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		start, passed := time.Now(), before
		for i := range before {
			if !take().Admitted {
				t.Fatalf("message %d is refused", i)
			}
		}
		ahead(t, prefix, time.Hour)
		for v := take(); ; v = take() {
			if v.Admitted {
				passed++
			} else if v.After > rule.Window {
				t.Fatalf("message %d is to come back after %v", passed, v.After)
			}
			if took := time.Since(start); took < rule.Window/2 && name == "window" && passed > rule.Limit {
				t.Fatalf("%d messages passed within %v", passed, took)
			}
			if passed > 2*rule.Limit || time.Since(start) > time.Minute {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if passed <= 2*rule.Limit {
			t.Errorf("%d messages passed in a minute", passed)
		}
	})
}

// ahead makes what a store has counted so much later, as if the clock had been set back since.
func ahead(t *testing.T, prefix string, by time.Duration) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer func() { _ = c.Close() }()
	names, err := c.Keys(t.Context(), "*"+prefix+"*").Result()
	if err != nil || len(names) == 0 {
		t.Fatalf("keys %v, %v", names, err)
	}
	for _, name := range names {
		if strings.Contains(name, ":w:") {
			members, err := c.ZRange(t.Context(), name, 0, -1).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				c.ZIncrBy(t.Context(), name, float64(by.Microseconds()), m)
			}
			c.Expire(t.Context(), name, by)
		} else if at, err := c.HGet(t.Context(), name, "ta").Result(); err == nil {
			us, _ := strconv.ParseInt(at, 10, 64)
			c.HSet(t.Context(), name, "ta", us+by.Microseconds())
		}
	}
}
