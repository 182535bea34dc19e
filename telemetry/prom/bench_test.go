package prom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/machine"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/worker"
)

// BenchmarkScrape scrapes 1,000 topics, with figures that are asked for anew each time and with those that a collector
// has.
func BenchmarkScrape(b *testing.B) {
	brokers := map[string]func(b *testing.B) *ferry.Broker{
		"memory": func(b *testing.B) *ferry.Broker {
			broker, err := memory.Open(b.Context(), memory.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return broker
		},
		"redis": func(b *testing.B) *ferry.Broker {
			broker, err := redis.Open(b.Context(), redis.Options{URL: redistest.Shared(b).URL()})
			if err != nil {
				b.Fatal(err)
			}
			return broker
		},
	}
	for _, name := range []string{"memory", "redis"} {
		for kind, age := range map[string]time.Duration{"asking": time.Nanosecond, "collected": time.Hour} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				broker := brokers[name](b)
				defer func() { _ = broker.Close(context.Background()) }()
				for i := range 1000 {
					if _, err := ferry.Publish(b.Context(), broker, fmt.Sprintf("topic-%d", i), i); err != nil {
						b.Fatal(err)
					}
				}
				m := newMetrics(b, prom.Options{Age: age})
				c, err := monitor.NewCollector(broker, monitor.CollectorOptions{})
				if err != nil {
					b.Fatal(err)
				}
				if err := m.Watch(prom.Sources{Collector: c}); err != nil {
					b.Fatal(err)
				}
				h := m.Handler()
				c.Collect(b.Context())
				begin := machine.Read()
				for b.Loop() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
					if w.Code != 200 || w.Body.Len() < 500_000 {
						b.Fatalf("%d, %d bytes", w.Code, w.Body.Len())
					}
				}
				reportCPU(b, begin)
			})
		}
	}
}

// BenchmarkPublishToAck moves messages on the memory broker with and without metrics.
func BenchmarkPublishToAck(b *testing.B) {
	for _, bc := range []struct {
		name    string
		metrics bool
		batch   int
	}{{"single/plain", false, 1}, {"single/metrics", true, 1}, {"batch100/plain", false, 100},
		{"batch100/metrics", true, 100}} {
		b.Run(bc.name, func(b *testing.B) {
			var o ferry.Options
			m := newMetrics(b, prom.Options{})
			if bc.metrics {
				o.Hooks = m.Hooks()
			}
			publishToAck(b, o, bc.batch, func(w *worker.Worker) {
				if err := m.Watch(prom.Sources{Workers: []*worker.Worker{w}}); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

func publishToAck(b *testing.B, o ferry.Options, batch int, use func(*worker.Worker)) {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{Broker: o})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	w := worker.New(broker, worker.Options{})
	var handled atomic.Int64
	all := make(chan struct{})
	worker.HandleRaw(w, "orders", func(context.Context, *ferry.Delivery) error {
		if handled.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	use(w)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	<-w.Ready()
	body := make([]byte, 128)
	ms := make([]*ferry.Message, 0, batch)
	b.ReportAllocs()
	b.ResetTimer()
	begin := machine.Read()
	for n := 0; n < b.N; n += len(ms) {
		for int64(n)-handled.Load() > 10_000 {
			time.Sleep(20 * time.Microsecond)
		}
		ms = ms[:0]
		for range min(batch, b.N-n) {
			ms = append(ms, &ferry.Message{Topic: "orders", Body: body})
		}
		if batch == 1 {
			_, err = broker.Publish(ctx, ms[0])
		} else {
			_, err = broker.PublishBatch(ctx, ms)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	<-all
	b.StopTimer()
	reportCPU(b, begin)
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// reportCPU reports the processor time of each operation, which others on the same machine change less than they change
// the time.
func reportCPU(b *testing.B, begin machine.Sample) {
	b.ReportMetric(float64(machine.Read().Process-begin.Process)/float64(b.N), "cpu-ns/op")
}
