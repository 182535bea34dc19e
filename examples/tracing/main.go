// Command tracing follows an order over a failure, a retry and a follow-up, and shows its trace. With
// OTEL_EXPORTER_OTLP_ENDPOINT it is sent to a collector too.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/telemetry/otel"
	"github.com/ferrymq/ferry/worker"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	spans := tracetest.NewInMemoryExporter() // a program of yours calls otel.Setup instead
	options := []sdk.TracerProviderOption{sdk.WithSyncer(spans)}
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return err
		}
		options = append(options, sdk.WithBatcher(exporter))
	}
	provider := sdk.NewTracerProvider(options...)
	defer func() { _ = provider.ForceFlush(ctx) }()
	tracing, err := otel.New(otel.Options{Provider: provider})
	if err != nil {
		return err
	}
	broker, err := memory.Open(ctx, memory.Options{Broker: ferry.Options{
		Hooks:  tracing.Hooks(),
		Logger: slog.New(slog.DiscardHandler), // the first attempt fails on purpose
	}})
	if err != nil {
		return err
	}
	defer broker.Close(context.WithoutCancel(ctx))

	done := make(chan struct{})
	w := worker.New(broker, worker.Options{Retry: ferry.Delays(10 * time.Millisecond)})
	w.Use(tracing.Middleware())
	worker.Handle(w, "orders", func(ctx context.Context, m *ferry.Msg[string]) error {
		if m.Attempt == 1 {
			return errors.New("billing did not answer")
		}
		return worker.Emit(ctx, "mails", "thank you for the "+m.Value)
	})
	worker.Handle(w, "mails", func(context.Context, *ferry.Msg[string]) error {
		close(done)
		return nil
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()

	request, span := provider.Tracer("shop").Start(ctx, "POST /orders")
	_, err = ferry.Publish(request, broker, "orders", "ferry boat")
	span.End()
	if err == nil {
		<-done
	}
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	show(spans.GetSpans(), trace.SpanID{}, 0)
	return nil
}

// show prints the spans below one, as they began.
func show(all tracetest.SpanStubs, parent trace.SpanID, depth int) {
	for _, s := range all {
		if s.Parent.SpanID() != parent {
			continue
		}
		line := strings.Repeat("  ", depth) + s.Name
		for _, a := range s.Attributes {
			if a.Key == attribute.Key("ferry.attempt") || a.Key == attribute.Key("ferry.outcome") {
				line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(a.Key), "ferry."), a.Value.String())
			}
		}
		if s.Status.Description != "" {
			line += ": " + s.Status.Description
		}
		fmt.Println(line)
		show(all, s.SpanContext.SpanID(), depth+1)
	}
}
