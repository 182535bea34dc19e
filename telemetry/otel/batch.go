package otel

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
)

// Batch traces a batch handler: one span for each batch, with a link to each message that carries a context, since they
// come from different traces. What the handler publishes is below it. Middleware makes a span of each message of a
// batch, too, which has its outcome.
//
//	worker.HandleBatch(w, "orders", otel.Batch(tracing, handle))
func Batch[T any](t *Tracing, handler func(ctx context.Context, ms []*ferry.Msg[T]) error,
) func(ctx context.Context, ms []*ferry.Msg[T]) error {
	return func(ctx context.Context, ms []*ferry.Msg[T]) error {
		ds := make([]*ferry.Delivery, len(ms))
		for i, m := range ms {
			ds[i] = m.Delivery
		}
		traced, p := t.beginBatch(ctx, ds)
		if p == nil {
			return handler(ctx, ms)
		}
		defer p.crashed()
		err := handler(traced, ms)
		p.endBatch(err)
		return err
	}
}

func (t *Tracing) beginBatch(ctx context.Context, ds []*ferry.Delivery) (context.Context, *process) {
	var links []trace.Link
	for _, d := range ds {
		if !t.carries(d) {
			continue
		}
		if origin := trace.SpanContextFromContext(t.remote(ctx, d)); origin.IsRemote() {
			links = append(links, trace.Link{SpanContext: origin})
		}
	}
	if len(ds) == 0 || len(links) == 0 && t.ratio > 0 {
		return ctx, nil
	}
	o := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithNewRoot(),
		trace.WithLinks(links...)}
	if t.ratio > 0 {
		o = append(o, trace.WithAttributes(Chosen.Bool(true))) // as its messages were
	}
	traced, span := t.tracer.Start(ctx, "process "+ds[0].Topic, o...)
	if span.IsRecording() {
		span.SetAttributes(t.system, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"),
			semconv.MessagingDestinationName(ds[0].Topic),
			semconv.MessagingConsumerGroupName(ds[0].Group), semconv.MessagingBatchMessageCount(len(ds)))
	}
	p := &process{span: span}
	return context.WithValue(traced, processKey{}, p), p
}

func (p *process) endBatch(err error) {
	if err != nil {
		p.span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
		p.span.SetStatus(codes.Error, err.Error())
	}
	p.sends.end(nil)
	p.span.End()
}
