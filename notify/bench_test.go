package notify_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/open"
)

// BenchmarkWebhooks sends webhooks to a server of this process, each to another path, and waits until all
// have arrived: hub, memory broker, receipts and receiver share the processors.
func BenchmarkWebhooks(b *testing.B) {
	broker, err := open.URL(b.Context(), "memory://")
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close(context.Background())
	var arrived atomic.Int64
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if arrived.Add(1) == int64(b.N) {
			close(all)
		}
	}))
	defer server.Close()
	hub, err := notify.New(broker, notify.Options{Channels: webhooks(), Concurrency: 32})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	b.ResetTimer()
	for sent := 0; sent < b.N; {
		var ms []*notify.Message
		for ; sent < b.N && len(ms) < 100; sent++ {
			ms = append(ms, notify.NewMessage("t", "b").AddWebhook(fmt.Sprintf("%s/%d", server.URL, sent)))
		}
		if _, err := hub.SendBatch(ctx, ms...); err != nil {
			b.Fatal(err)
		}
	}
	<-all
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "webhooks/s")
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
	_ = hub.Close()
}
