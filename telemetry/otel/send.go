package otel

import (
	"context"
	"errors"
	"maps"
	"sync"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
)

// Hooks trace what is published, follow-ups included. Give them to the broker, with Hooks.And beside others.
func (t *Tracing) Hooks() ferry.Hooks {
	return ferry.Hooks{Publishing: t.publishing, Published: t.published}
}

// sendKey is where the context of a publish has its span.
type sendKey struct{}

// publishing begins the span of a publish and writes its context into the headers.
func (t *Tracing) publishing(ctx context.Context, m *ferry.Message) context.Context {
	inside := trace.SpanContextFromContext(ctx).IsValid()
	if !inside && !t.chooses() {
		return ctx
	}
	o := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer)}
	if !inside && t.ratio > 0 {
		o = append(o, trace.WithAttributes(Chosen.Bool(true)))
	}
	ctx, span := t.tracer.Start(ctx, "send "+m.Topic, o...)
	if span.IsRecording() {
		span.SetAttributes(t.system, semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("send"),
			semconv.MessagingDestinationName(m.Topic),
			semconv.MessagingMessageID(m.ID), semconv.MessagingMessageBodySize(len(m.Body)))
	}
	headers := make(carrier, len(m.Headers)+2) // the map may be the publisher's
	maps.Copy(headers, m.Headers)
	t.propagator.Inject(ctx, headers)
	m.Headers = headers
	if r, ok := ctx.Value(processKey{}).(*process); ok {
		r.sends.add(span)
	}
	return context.WithValue(ctx, sendKey{}, span)
}

// published ends the span of a publish.
func (t *Tracing) published(ctx context.Context, e ferry.Event) {
	span, ok := ctx.Value(sendKey{}).(trace.Span)
	if !ok {
		return
	}
	switch {
	case e.Err != nil:
		span.SetAttributes(semconv.ErrorTypeKey.String(errorType(e.Err)))
		span.SetStatus(codes.Error, e.Err.Error())
	case e.Receipt.Duplicate:
		span.SetAttributes(duplicateKey.Bool(true))
	}
	if r, ok := ctx.Value(processKey{}).(*process); ok {
		r.sends.remove(span)
	}
	span.End()
}

// sends are the spans of what a handler has published or emitted and nobody has ended. An emitted message is sent with
// the settlement, after the handler: its span ends with that of the handler.
type sends struct {
	mu   sync.Mutex
	open []trace.Span
}

func (s *sends) add(span trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, span)
}

func (s *sends) remove(span trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, open := range s.open {
		if open == span {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return
		}
	}
}

func (s *sends) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.open {
		span.SetAttributes(followUpKey.Bool(true))
		if err != nil {
			span.SetStatus(codes.Error, "not sent: the handler failed")
		}
		span.End()
	}
	s.open = nil
}

// errorType is the kind of an error as an attribute: few values, no text.
func errorType(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{ferry.ErrNotApplied, "not_applied"}, {ferry.ErrUnknown, "unknown"}, {ferry.ErrFull, "full"},
		{ferry.ErrTooLarge, "too_large"}, {ferry.ErrRefused, "refused"},
		{ferry.ErrClosed, "closed"}, {ferry.ErrInvalid, "invalid"}, {ferry.ErrUnsupported, "unsupported"},
		{ferry.ErrLeaseLost, "lease_lost"},
		{context.DeadlineExceeded, "timeout"}, {context.Canceled, "canceled"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "_OTHER"
}
