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
// acknowledgement, in batches of 100, without guards and with guards that do not bind. With "work" the handler computes
// for about 5 µs, as one that decodes a message and looks at it does.
// Lesson: L70
func BenchmarkWorker(b *testing.B) {
	for _, work := range []int{0, 5} {
		for _, name := range []string{"unguarded", "limit", "bucket", "breaker", "limit+breaker", "limit+slots+breaker", "all"} {
			b.Run(fmt.Sprintf("work=%dus/%s", work, name), func(b *testing.B) { benchWorker(b, benchLayers(b, name), work) })
		}
	}
}

func benchWorker(b *testing.B, layers []worker.Middleware, work int) {
	ctx := context.Background()
	broker, err := ferry.New(memory.New(memory.Options{}), ferry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	w := worker.New(broker, worker.Options{})
	var handled, sum atomic.Int64
	all := make(chan struct{})
	worker.HandleRaw(w, topic, func(_ context.Context, d *ferry.Delivery) error {
		x := int64(len(d.Body))
		for i := range work * 1500 {
			x = x*31 + int64(i)
		}
		if work > 0 {
			sum.Add(x & 1)
		}
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
	benchPublish(b, broker, &handled)
	<-all
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.StopTimer()
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
