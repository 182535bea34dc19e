package otel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/machine"
	"github.com/ferrymq/ferry/telemetry/otel"
	"github.com/ferrymq/ferry/worker"
)

// BenchmarkPublishToAck moves messages on the memory broker without traces, with those of one message in a hundred, and
// with all.
func BenchmarkPublishToAck(b *testing.B) {
	for _, bc := range []struct {
		name   string
		traced bool
		ratio  float64
	}{{"plain", false, 0}, {"traced-1%", true, 0.01}, {"traced-all", true, 0}} {
		b.Run(bc.name, func(b *testing.B) {
			provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(otel.Sampler(sdk.AlwaysSample()))),
				sdk.WithBatcher(nowhere{}))
			defer func() { _ = provider.Shutdown(context.Background()) }()
			tracing, err := otel.New(otel.Options{Provider: provider, Ratio: bc.ratio})
			if err != nil {
				b.Fatal(err)
			}
			var o ferry.Options
			if bc.traced {
				o.Hooks = tracing.Hooks()
			}
			publishToAck(b, o, func(w *worker.Worker) {
				if bc.traced {
					w.Use(tracing.Middleware())
				}
			})
		})
	}
}

// nowhere is an exporter that sends nothing.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                        { return nil }

func publishToAck(b *testing.B, o ferry.Options, use func(*worker.Worker)) {
	ctx := context.Background()
	broker, err := memory.Open(ctx, memory.Options{Broker: o})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = broker.Close(ctx) }()
	w := worker.New(broker, worker.Options{})
	use(w)
	var handled atomic.Int64
	all := make(chan struct{})
	worker.HandleRaw(w, "orders", func(context.Context, *ferry.Delivery) error {
		if handled.Add(1) == int64(b.N) {
			close(all)
		}
		return nil
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	<-w.Ready()
	body := make([]byte, 128)
	b.ReportAllocs()
	b.ResetTimer()
	begin := machine.Read()
	for n := range b.N {
		for int64(n)-handled.Load() > 10_000 {
			time.Sleep(20 * time.Microsecond)
		}
		if _, err := broker.Publish(ctx, &ferry.Message{Topic: "orders", Body: body}); err != nil {
			b.Fatal(err)
		}
	}
	<-all
	b.StopTimer()
	b.ReportMetric(float64(machine.Read().Process-begin.Process)/float64(b.N), "cpu-ns/op")
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
