package guard_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// benchLayers are layers that do not bind.
func benchLayers(b testing.TB, name string) []worker.Middleware {
	store := memoryStore()
	limiter := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "key", Rule: guard.Rule{Limit: guard.MaxLimit, Window: time.Second}}}}))(b)
	bucket := must(guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "key", Rule: guard.Rule{Limit: 1e9, Window: time.Second, Burst: 1e9}}}}))(b)
	slots := must(guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "key", Max: 1000}))(b)
	breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "down"}))(b)
	dedup := must(guard.NewDedup(store, guard.DedupOptions{Name: "once", Window: time.Second}))(b)
	return map[string]guard.Layers{
		"unguarded":           {},
		"limit":               {Limit: limiter},
		"bucket":              {Limit: bucket},
		"breaker":             {Breaker: breaker},
		"limit+breaker":       {Limit: limiter, Breaker: breaker},
		"limit+slots+breaker": {Limit: limiter, Concurrency: slots, Breaker: breaker},
		"all":                 {Limit: limiter, Concurrency: slots, Dedup: dedup, Breaker: breaker},
	}[name].Middleware()
}

// BenchmarkWorker moves messages of a thousand keys from publish through a handler that does nothing to their
// acknowledgement, in batches of 100, without guards and with guards that do not bind.
// Lesson: L70
func BenchmarkWorker(b *testing.B) {
	for _, name := range []string{"unguarded", "limit", "bucket", "breaker", "limit+breaker",
		"limit+slots+breaker", "all"} {
		b.Run(name, func(b *testing.B) { benchWorker(b, benchLayers(b, name)) })
	}
}

func benchWorker(b *testing.B, layers []worker.Middleware) {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	w := worker.New(broker, worker.Options{})
	var handled atomic.Int64
	all := make(chan struct{})
	worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
		if handled.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	}, worker.Use(layers...))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	benchPublish(b, broker, &handled)
	<-all
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op") // says more than the clock on a busy machine
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// benchPublish publishes b.N messages, and lets the backlog grow to 10,000.
func benchPublish(b *testing.B, broker *ferry.Broker, handled *atomic.Int64) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("user", i)
	}
	body := make([]byte, 128)
	for sent := 0; sent < b.N; {
		for int64(sent)-handled.Load() > 10_000 {
			time.Sleep(20 * time.Microsecond)
		}
		n := min(100, b.N-sent)
		ms := make([]*ferry.Message, n)
		for i := range ms {
			ms[i] = &ferry.Message{Topic: topic, Key: keys[(sent+i)%len(keys)], Body: body}
		}
		if _, err := broker.PublishBatch(context.Background(), ms); err != nil {
			b.Fatal(err)
		}
		sent += n
	}
}

// BenchmarkLayers measures what each layer adds to one message.
func BenchmarkLayers(b *testing.B) {
	for _, name := range []string{"limit", "bucket", "breaker", "limit+slots+breaker", "all"} {
		b.Run(name, func(b *testing.B) {
			handle := worker.Handler(func(context.Context, *ferry.Delivery) error { return nil })
			layers := benchLayers(b, name)
			for i := len(layers) - 1; i >= 0; i-- {
				handle = layers[i](handle)
			}
			ds := make([]*ferry.Delivery, 1000)
			for i := range ds {
				ds[i] = &ferry.Delivery{Message: &ferry.Message{Topic: topic, ID: fmt.Sprint("id", i), Key: fmt.Sprint("user", i)}}
			}
			b.ReportAllocs()
			before := cpuTime()
			for i := 0; b.Loop(); i++ {
				ds[i%len(ds)].ID = "" // another message
				if err := handle(context.Background(), ds[i%len(ds)]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkDedup measures one decision about work that is new: begun, handled and marked, with as many marks kept as
// there were decisions.
func BenchmarkDedup(b *testing.B) {
	dedup := must(guard.NewDedup(guard.NewMemory(guard.MemoryOptions{MaxKeys: 1 << 30}),
		guard.DedupOptions{Name: "once"}))(b)
	handle := dedup.Middleware()(func(context.Context, *ferry.Delivery) error { return nil })
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = fmt.Sprintf("018f3c5e-7b1a-7c00-8000-%012d", i)
	}
	d := &ferry.Delivery{Group: "default", Message: &ferry.Message{Topic: topic}}
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	for _, id := range ids {
		d.ID = id
		if err := handle(context.Background(), d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
}
