package schedule_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
)

// BenchmarkLateness measures how long after its tick a message is in the hands of a consumer, by the clock of this
// machine, and the same of messages that are plainly delayed: go test ./schedule -run '^$' -bench Lateness -benchtime
// 1000x
func BenchmarkLateness(b *testing.B) {
	for name, url := range brokers(b) {
		b.Run(name+"/delayed", func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			broker, _ := bench(b, ctx, url)
			sub := consumer(b, ctx, broker)
			begin := time.Now().Add(3 * time.Second)
			var all []*ferry.Message
			for i := range b.N {
				m, at := message("x"), begin.Add(time.Duration(i)*67*time.Millisecond)
				m.At, m.Headers = at, map[string]string{schedule.HeaderTick: at.Format(time.RFC3339Nano)}
				all = append(all, m)
			}
			if _, err := broker.PublishBatch(ctx, all); err != nil {
				b.Fatal(err)
			}
			report(b, lateness(b, ctx, sub, b.N))
		})
		b.Run(name+"/scheduled", func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			broker, s := bench(b, ctx, url)
			sub := consumer(b, ctx, broker)
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			const schedules = 100 // 15 ticks a second, spread over it
			for i := range schedules {
				err := s.Put(ctx, schedule.Schedule{Name: fmt.Sprintf("s%d", i), Spec: fmt.Sprintf("@every %dms", 5000+37*i),
					Message: message("x")})
				if err != nil {
					b.Fatal(err)
				}
			}
			lateness(b, ctx, sub, schedules) // while they are put
			late := lateness(b, ctx, sub, b.N)
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
			report(b, late)
		})
	}
}

//nolint:revive // as testing has it
func consumer(b *testing.B, ctx context.Context, broker *ferry.Broker) driver.Subscription {
	b.Helper()
	sub, err := broker.Driver().Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	return sub
}

func report(b *testing.B, late []time.Duration) {
	slices.Sort(late)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(late[(len(late)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(float64(late[0].Microseconds())/1000, "least-ms")
	b.ReportMetric(0, "ns/op")
}

// bench opens an empty broker and a scheduler on it.
//
//nolint:revive // as testing has it
func bench(b *testing.B, ctx context.Context, url string) (*ferry.Broker, *schedule.Scheduler) {
	b.Helper()
	url = strings.Replace(url, "?prefix=", "?prefix="+rand.Text(), 1)
	if strings.HasPrefix(url, "disk:") {
		url += "/" + rand.Text()
	}
	broker, err := open.URL(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = broker.Close(context.Background()) })
	s, err := schedule.New(broker, schedule.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return broker, s
}

// lateness returns how late each of n messages was received.
//
//nolint:revive // as testing has it
func lateness(b *testing.B, ctx context.Context, sub driver.Subscription, n int) []time.Duration {
	b.Helper()
	var late []time.Duration
	for len(late) < n {
		ds, err := sub.Receive(ctx, 100)
		if err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		var list []driver.Settlement
		for _, d := range ds {
			tick, err := time.Parse(time.RFC3339Nano, d.Headers[schedule.HeaderTick])
			if err != nil {
				b.Fatal(err)
			}
			late = append(late, now.Sub(tick))
			list = append(list, driver.Settlement{Delivery: d})
		}
		sub.Settle(ctx, list)
	}
	return late
}

// BenchmarkMemory measures what 10,000 schedules take: in the process that runs them, and in the broker.
// go test ./schedule -run '^$' -bench Memory -benchtime 1x
func BenchmarkMemory(b *testing.B) {
	for name, url := range brokers(b) {
		if name == "disk" {
			continue // what it holds in memory is the cache of its store
		}
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			broker, s := bench(b, ctx, url)
			const schedules = 10_000
			heap, used := usage(b, broker)
			for i := range schedules {
				if err := s.Put(ctx, schedule.Schedule{Name: fmt.Sprintf("tenant-%d/report", i), Spec: "0 3 * * *",
					Message: message(`{"kind":"daily"}`)}); err != nil {
					b.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			heapAfter, usedAfter := usage(b, broker)
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
			b.ReportMetric(float64(heapAfter-heap)/schedules, "heap-B/schedule")
			b.ReportMetric(float64(usedAfter-used)/schedules, "broker-B/schedule")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func usage(b *testing.B, broker *ferry.Broker) (heap, used int64) {
	b.Helper()
	u, err := broker.Driver().Usage(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), u.Memory
}
