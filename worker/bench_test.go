package worker_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

// BenchmarkRawHandler moves messages from publish through a handler that does nothing to their acknowledgement.
func BenchmarkRawHandler(b *testing.B) {
	for _, bc := range []struct {
		name       string
		size       int
		publishers int
		batch      int
		keys       int
		opts       []worker.HandlerOption
	}{
		{name: "batch100", size: 128, publishers: 1, batch: 100},
		{name: "batch100-1KB", size: 1024, publishers: 1, batch: 100},
		{name: "batch100-timeout", size: 128, publishers: 1, batch: 100,
			opts: []worker.HandlerOption{worker.Timeout(time.Minute)}},
		{name: "batch100-keyed", size: 128, publishers: 1, batch: 100, keys: 1000},
		{name: "single8", size: 128, publishers: 8, batch: 1},
	} {
		b.Run(bc.name, func(b *testing.B) {
			body := make([]byte, bc.size)
			benchmark(b, bc.publishers, bc.batch, func(i int) *ferry.Message {
				m := &ferry.Message{Topic: topic, Body: body}
				if bc.keys > 0 {
					m.Key = keyNames[i%bc.keys]
				}
				return m
			}, func(w *worker.Worker, done func()) {
				worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
					done()
					return nil
				}, bc.opts...)
			})
		})
	}
}

// BenchmarkTypedHandler decodes a small JSON value for each message.
func BenchmarkTypedHandler(b *testing.B) {
	type order struct {
		ID   int
		Name string
	}
	benchmark(b, 1, 100, func(int) *ferry.Message {
		return &ferry.Message{Topic: topic, Body: []byte(`{"ID":1,"Name":"books"}`), ContentType: "application/json"}
	}, func(w *worker.Worker, done func()) {
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[order]) error {
			done()
			return nil
		})
	})
}

// BenchmarkManyHandlers has handlers of so many topics in one worker.
func BenchmarkManyHandlers(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			topics := make([]string, n)
			for i := range topics {
				topics[i] = topic + strconv.Itoa(i)
			}
			body := make([]byte, 128)
			benchmark(b, 1, 100, func(i int) *ferry.Message {
				return &ferry.Message{Topic: topics[i%n], Body: body}
			}, func(w *worker.Worker, done func()) {
				for _, t := range topics {
					worker.HandleRaw(w, t, func(context.Context, *ferry.Delivery) error {
						done()
						return nil
					})
				}
			})
		})
	}
}

var keyNames = numbered(1000)

func benchmark(b *testing.B, publishers, batch int, message func(i int) *ferry.Message,
	register func(w *worker.Worker, done func())) {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	w := worker.New(broker, worker.Options{})
	var handled atomic.Int64
	all := make(chan struct{})
	register(w, func() {
		if handled.Add(1) == int64(b.N) {
			close(all)
		}
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()

	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	var published atomic.Int64
	for range publishers {
		wg.Go(func() { publishAll(b, broker, batch, &published, &handled, message) })
	}
	wg.Wait()
	<-all
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	infos, err := broker.Driver().Topics(ctx)
	acked := uint64(0)
	for _, info := range infos {
		s, e := broker.Driver().Stats(ctx, info.Topic)
		if e != nil {
			b.Error(e)
			continue
		}
		acked += s.Groups[0].Acked
	}
	if err != nil || acked != uint64(b.N) {
		b.Errorf("%d of %d acknowledged, %v", acked, b.N, err)
	}
}

// publishAll publishes until b.N messages are published by all, and lets the backlog grow to 10,000.
func publishAll(b *testing.B, broker *ferry.Broker, batch int, published, handled *atomic.Int64,
	message func(int) *ferry.Message) {
	ctx := context.Background()
	ms := make([]*ferry.Message, 0, batch)
	for {
		last := published.Add(int64(batch))
		n := min(batch, int(int64(b.N)-last)+batch)
		if n <= 0 {
			return
		}
		for last-handled.Load() > 10_000 {
			time.Sleep(20 * time.Microsecond)
		}
		ms = ms[:0]
		for i := range n {
			ms = append(ms, message(int(last)+i))
		}
		var err error
		if n == 1 {
			_, err = broker.Publish(ctx, ms[0])
		} else {
			_, err = broker.PublishBatch(ctx, ms)
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
}
