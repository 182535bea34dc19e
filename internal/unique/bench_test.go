package unique_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// Publishes of different unique ids by many callers at once, and by one caller in batches, beside the same without an
// id. FERRY_BENCH_KAFKA=1 measures Kafka too.
func BenchmarkUnique(b *testing.B) {
	urls := map[string]func() string{
		"redis": func() string { return redistest.Shared(b).URL() + "?prefix=bench-" + rand.Text() }}
	if os.Getenv("FERRY_BENCH_KAFKA") != "" {
		urls["kafka"] = func() string {
			return "kafka://" + kafkatest.Shared(b).Addrs()[0] + "/?namespace=bench-" + rand.Text() + "."
		}
	}
	for name, url := range urls {
		for _, unique := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/callers=256/unique=%t", name, unique), func(b *testing.B) {
				benchCallers(b, url(), 256, unique)
			})
			b.Run(fmt.Sprintf("%s/batch=500/unique=%t", name, unique), func(b *testing.B) {
				benchBatches(b, url(), 500, unique)
			})
		}
	}
}

func benchBroker(b *testing.B, url string) *ferry.Broker {
	b.Helper()
	broker, err := open.URL(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = broker.Close(context.Background()) })
	if _, err := ferry.Publish(b.Context(), broker, topic, []byte("x")); err != nil { // what is made once is made
		b.Fatal(err)
	}
	return broker
}

func benchOption(n int64, unique bool) ferry.PublishOption {
	if !unique {
		return nil
	}
	return ferry.Unique(fmt.Sprint("report-", n), 10*time.Minute)
}

func benchCallers(b *testing.B, url string, callers int, unique bool) {
	broker := benchBroker(b, url)
	body := make([]byte, 128)
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if _, err := broker.Publish(b.Context(), &ferry.Message{Topic: topic, Body: body},
					benchOption(n, unique)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

func benchBatches(b *testing.B, url string, size int, unique bool) {
	broker := benchBroker(b, url)
	b.ResetTimer()
	for n := 0; n < b.N; {
		batch := make([]*ferry.Message, min(size, b.N-n))
		for i := range batch {
			m, err := ferry.NewMessage(b.Context(), broker, topic, make([]byte, 128), benchOption(int64(n+i), unique))
			if err != nil {
				b.Fatal(err)
			}
			batch[i] = m
		}
		if _, err := broker.PublishBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		n += len(batch)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}
