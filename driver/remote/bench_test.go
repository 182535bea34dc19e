package remote_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/worker"
)

// BenchmarkDrain has a worker handle a backlog of 1 KB messages through a gateway in front of memory, over TCP, both in
// one process.
func BenchmarkDrain(b *testing.B) {
	backend, err := ferry.New(newMemory(b), ferry.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = backend.Close(context.Background()) }()
	g, err := gateway.New(backend, gateway.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(as(operator(), g))
	defer s.Close()
	broker, err := remote.Open(b.Context(), remote.Options{URL: strings.Replace(s.URL, "http", "ferry", 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(context.Background()) }()
	fill(b, backend)
	b.SetBytes(benchBody)
	b.ReportAllocs()
	b.ResetTimer()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	w := worker.New(broker, worker.Options{})
	worker.HandleRaw(w, benchTopic, func(context.Context, *ferry.Delivery) error {
		if handled.Add(1) == int64(b.N) {
			cancel()
		}
		return nil
	})
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
}

const (
	benchTopic = "bench"
	benchBody  = 1024
)

// fill publishes as many messages as the benchmark handles.
func fill(b *testing.B, broker *ferry.Broker) {
	b.Helper()
	for n := b.N; n > 0; n -= 100 {
		ms := make([]*ferry.Message, min(n, 100))
		for i := range ms {
			ms[i] = &ferry.Message{Topic: benchTopic, Body: make([]byte, benchBody)}
		}
		if _, err := broker.PublishBatch(b.Context(), ms); err != nil {
			b.Fatal(err)
		}
	}
}
