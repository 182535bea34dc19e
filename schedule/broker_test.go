package schedule_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
)

// brokers are the URLs of empty brokers of every kind that holds schedules.
func brokers(t testing.TB) map[string]string {
	server := redistest.Single(t, redistest.Options{AOF: "everysec"})
	prefix := "?prefix=s" + rand.Text()
	return map[string]string{
		"memory":      "memory://",
		"disk":        "disk://" + t.TempDir(),
		"redis":       server.URL() + prefix,
		"redisstream": strings.Replace(server.URL(), "redis", "redisstream", 1) + prefix + "&partitions=2",
	}
}

// On every broker: three instances run, ticks fire once each and never early, edits and deletions take effect.
func TestOnEveryBroker(t *testing.T) {
	t.Parallel()
	urls := brokers(t)
	urls["kafka"] = "kafka://" + kafkatest.Single(t).Addrs()[0] + "/?namespace=s" + strings.ToLower(rand.Text()) +
		".&partitions=2&internal_partitions=1&transactions=true" // without them a tick may fire again
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open.URL(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, b.Driver())
			for range 3 {
				r.run()
			}
			onBroker(r)
		})
	}
}

func onBroker(r *rig) {
	ctx := r.Context()
	for i := range 5 {
		r.put(schedule.Schedule{Name: fmt.Sprintf("s%d", i), Spec: "@every 1s", Message: message("old")})
	}
	r.until(func(fires []fire) bool { return len(fires) >= 10 })
	r.put(schedule.Schedule{Name: "s0", Spec: "@every 1s", Message: message("new")})
	r.ok(r.s.Delete(ctx, "s2"))
	r.ok(r.s.Pause(ctx, "s1")) // the last of the edits: its time is after theirs
	_, err := r.s.Trigger(ctx, "s1")
	r.ok(err)
	edited := r.status("s1").Edited // by the broker's clock
	r.until(func(fires []fire) bool {
		return slices.ContainsFunc(fires, func(f fire) bool {
			return f.name == "s0" && f.at.After(edited.Add(2*time.Second))
		})
	})
	r.end()
	p, err := r.s.List(ctx, schedule.Query{})
	r.ok(err)
	if len(p.Schedules) != 4 {
		r.Errorf("%+v", p)
	}
	r.examine(r.fired(), edited)
}

// until waits for fires.
func (r *rig) until(enough func([]fire) bool) {
	r.Helper()
	for {
		r.mu.Lock()
		done := enough(r.fires)
		r.mu.Unlock()
		if done {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// examine demands that no tick fired twice or early, and none that was stopped long before.
func (r *rig) examine(fires []fire, edited time.Time) {
	r.Helper()
	seen, triggered := map[string]bool{}, 0
	for _, f := range fires {
		if f.tick == "" {
			triggered++
			continue
		}
		tick, err := time.Parse(time.RFC3339, f.tick)
		r.ok(err)
		if key := f.name + f.tick; seen[key] {
			r.Errorf("%s fired twice at %s", f.name, f.tick)
		} else {
			seen[key] = true
		}
		if f.at.Before(tick) {
			r.Errorf("%s fired early: %s at %s", f.name, f.tick, f.at)
		}
		if late := tick.After(edited); late && (f.name == "s1" || f.name == "s2" || f.name == "s0" && f.body != "new") {
			r.Errorf("%s fired with %q at %s, and was changed at %s", f.name, f.body, f.tick, edited)
		}
	}
	if triggered != 1 {
		r.Errorf("%d triggers", triggered)
	}
}

// A restart of the process changes nothing: schedules lie in the broker.
func TestReopened(t *testing.T) {
	t.Parallel()
	url, ctx := "disk://"+t.TempDir(), context.Background()
	for i := range 3 {
		b, err := open.URL(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := schedule.New(b, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			err = s.Put(ctx, schedule.Schedule{Name: "a", Spec: "@daily", Zone: "Asia/Shanghai", Message: message("a")})
		}
		st, got := s.Get(ctx, "a")
		if err := errors.Join(err, got); err != nil || st.State != schedule.Active || st.Zone != "Asia/Shanghai" ||
			string(st.Message.Body) != "a" {
			t.Errorf("%+v %v", st, err)
		}
		if n := lyingTicks(t, b); n != 1 {
			t.Errorf("%d ticks", n)
		}
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

func lyingTicks(t *testing.T, b *ferry.Broker) int {
	t.Helper()
	p, err := b.Driver().Browse(t.Context(), driver.Query{Topic: schedule.Topic, State: driver.StateDelayed})
	if err != nil {
		t.Fatal(err)
	}
	return len(p.Entries)
}
