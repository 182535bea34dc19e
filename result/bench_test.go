package result_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

// Messages that a worker handles on Redis, 1 ms each, 64 at once, with and without their results kept.
func BenchmarkKeep(b *testing.B) {
	server := redistest.Single(b, redistest.Options{})
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("kept=%t", kept), func(b *testing.B) {
			broker, err := open.URL(b.Context(), fmt.Sprintf("%s?prefix=%t-%d", server.URL(), kept, b.N))
			if err != nil {
				b.Fatal(err)
			}
			defer broker.Close(context.Background())
			before := used(b, server)
			handle(b, broker, kept)
			b.ReportMetric((used(b, server)-before)/float64(b.N), "server-µs/msg")
		})
	}
}

// used is the processor time that a server has used, in microseconds.
func used(b *testing.B, s *redistest.Server) (sum float64) {
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
	defer func() { _ = c.Close() }()
	for line := range strings.FieldsSeq(c.Info(b.Context(), "cpu").Val()) {
		if name, v, _ := strings.Cut(line, ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
			n, _ := strconv.ParseFloat(v, 64)
			sum += n * 1e6
		}
	}
	return sum
}

func handle(b *testing.B, broker *ferry.Broker, kept bool) {
	var opts []worker.HandlerOption
	if kept {
		keep, err := result.Keep(broker, result.Options{TTL: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		opts = append(opts, worker.Use(keep))
	}
	var left sync.WaitGroup
	left.Add(b.N)
	w := worker.New(broker, worker.Options{Concurrency: 64})
	worker.HandleRaw(w, topic, func(ctx context.Context, _ *ferry.Delivery) error {
		defer left.Done()
		time.Sleep(time.Millisecond)
		if !kept {
			return nil
		}
		return result.Return(ctx, 42)
	}, opts...)
	fill(b, broker)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	b.ResetTimer()
	left.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	cancel()
	running.Wait()
}

// fill publishes what is to be handled.
func fill(b *testing.B, broker *ferry.Broker) {
	for n := b.N; n > 0; {
		batch := make([]*ferry.Message, min(n, 1000))
		for i := range batch {
			batch[i] = &ferry.Message{Topic: topic, Body: make([]byte, 128)}
		}
		if _, err := broker.PublishBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		n -= len(batch)
	}
}
