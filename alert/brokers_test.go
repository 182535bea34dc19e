package alert_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/open"
)

// brokers are the URLs of one broker of each kind that has no virtual time.
func brokers(t *testing.T) map[string]string {
	t.Helper()
	run := strings.ToLower(rand.Text())
	redis := redistest.Shared(t).URL() + "?prefix=" + run
	return map[string]string{
		"disk":        "disk://" + t.TempDir(),
		"redis":       redis,
		"redisstream": strings.Replace(redis, "redis://", "redisstream://", 1) + "-stream",
		"kafka": "kafka://" + kafkatest.Shared(t).Addrs()[0] + "/?partitions=2&internal_partitions=1&namespace=" + run +
			".",
	}
}

// flaky is an inbox that fails at the first try of each notice.
type flaky struct {
	inbox
	tried sync.Map
}

func (f *flaky) Send(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	if _, again := f.tried.LoadOrStore(r.ID, true); !again {
		return notify.Sent{}, &notify.Error{Code: notify.CodeUnavailable, Text: "status 500"}
	}
	return f.inbox.Send(ctx, r)
}

func (f *flaky) has(title string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.titles, title)
}

// TestOnEveryBroker: an alert fires and resolves, and both notices arrive although the vendor fails at first.
func TestOnEveryBroker(t *testing.T) {
	t.Parallel()
	for name, url := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open.URL(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close(context.Background()) }()
			vendor := &flaky{}
			var leaks atomic.Int64
			stop := runBoth(t, b, vendor, func(context.Context) (map[string]float64, error) {
				return map[string]float64{"active_processors": float64(leaks.Load())}, nil
			})
			defer stop()
			leaks.Store(11)
			await(t, func() bool { return vendor.has("[WARNING] leak") })
			leaks.Store(0)
			await(t, func() bool { return vendor.has("[RESOLVED] leak") })
			h, err := alert.History(t.Context(), b, 10)
			if err != nil || len(h) != 2 || h[0].What != "resolved" || h[1].What != "fired" {
				t.Errorf("the history is %+v, %v", h, err)
			}
			if n := vendor.count(); n != 2 {
				t.Errorf("%d notices arrived, not 2", n)
			}
		})
	}
}

// TestDigestsOnEveryBroker: notifications are collected for a robot that is gone, and reach the fallback in a digest,
// once, whatever keeps the collection, the delayed end of it and the receipts.
func TestDigestsOnEveryBroker(t *testing.T) {
	t.Parallel()
	for name, url := range brokers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open.URL(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = b.Close(context.Background()) }()
			vendor := &flaky{}
			hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"chat": notify.Func(down),
				"in": vendor}})
			if err != nil {
				t.Fatal(err)
			}
			defer runtest.Start(t, hub.Run)()
			to := notify.Target{Channel: "chat", To: "ops", Fallbacks: []notify.Target{{Channel: "in", To: "ops"}}}
			var ms []*notify.Message
			for i := range 5 {
				ms = append(ms, notify.NewMessage(fmt.Sprintf("title-%d", i), "b").AddTarget(to).
					WithDigest(notify.Digest{Window: time.Second}))
			}
			sent, err := hub.SendBatch(t.Context(), ms...)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range sent {
				r, err := h.Wait(t.Context())
				if err != nil || r.Status != notify.Success || r.Targets[0].Reached.Channel != "in" ||
					len(r.Targets[0].Tried) != 1 {
					t.Errorf("%+v, %v", r, err)
				}
			}
			vendor.mu.Lock()
			defer vendor.mu.Unlock()
			all := strings.Join(vendor.titles, "\n") + strings.Join(vendor.bodies, "\n")
			for _, m := range ms { // in one digest, or in two on a machine that is slow
				if n := strings.Count(all, m.Title); n != 1 {
					t.Errorf("%s arrived %d times", m.Title, n)
				}
			}
		})
	}
}

// await polls until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// runBoth runs a hub and a watch until the returned function is called.
func runBoth(t *testing.T, b *ferry.Broker, c notify.Channel, source alert.Source) func() {
	t.Helper()
	hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"in": c}})
	if err != nil {
		t.Fatal(err)
	}
	collector, err := monitor.NewCollector(b, monitor.CollectorOptions{Partitions: true})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := alert.New(b, alert.Options{Hub: hub, Collector: collector, Every: 100 * time.Millisecond,
		Rules: leak(0, time.Hour), Sources: []alert.Source{source},
		Channels: map[string][]notify.Target{"ops": {{Channel: "in", To: "ops"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return runtest.Start(t, hub.Run, watch.Run)
}
