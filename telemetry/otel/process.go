package otel

import (
	"context"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Attributes that the conventions do not have.
const (
	attemptKey    = attribute.Key("ferry.attempt")    // 1 plus the attempts that failed
	deliveriesKey = attribute.Key("ferry.deliveries") // 1 plus the leases that were lost
	causeKey      = attribute.Key("ferry.cause")      // why it is delivered: first, retry, lease_expired, ...
	outcomeKey    = attribute.Key("ferry.outcome")    // ack, retry, dead, drop, release
	followUpKey   = attribute.Key("ferry.follow_up")  // emitted by a handler
	duplicateKey  = attribute.Key("ferry.duplicate")  // known already, not stored again
)

// processKey is where the context of a handler has its span.
type processKey struct{}

// process is one attempt under way.
type process struct {
	span  trace.Span
	sends sends
}

// Middleware traces handlers of single messages: each attempt is a span, child of that of the publish and linked to it.
// Make it the outermost, so that what other middleware does is inside.
func (t *Tracing) Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			traced, p := t.begin(ctx, d)
			if p == nil {
				return next(ctx, d)
			}
			defer p.crashed()
			err := next(traced, d)
			p.end(ctx, err)
			return err
		}
	}
}

// begin begins the span of an attempt, or returns nil for a message that belongs to no trace and begins none.
func (t *Tracing) begin(ctx context.Context, d *ferry.Delivery) (context.Context, *process) {
	if t.ratio > 0 && !t.carries(d) {
		return ctx, nil // it was not chosen when it was published; most are not, and nothing is made for them
	}
	remote := t.remote(ctx, d)
	origin := trace.SpanContextFromContext(remote)
	if t.ratio > 0 && !origin.IsRemote() {
		return ctx, nil
	}
	o := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	if origin.IsRemote() {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	traced, span := t.tracer.Start(remote, "process "+d.Topic, o...)
	if span.IsRecording() {
		span.SetAttributes(t.system, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("process"))
		span.SetAttributes(attributesOf(d)...)
	}
	p := &process{span: span}
	return context.WithValue(traced, processKey{}, p), p
}

// carries reports whether a message has a header that may hold a context.
func (t *Tracing) carries(d *ferry.Delivery) bool {
	for _, field := range t.fields {
		if _, ok := d.Headers[field]; ok {
			return true
		}
	}
	return false
}

// remote is ctx with the context that a message carries. What is in ctx, of the program that runs the worker, is not
// its origin.
func (t *Tracing) remote(ctx context.Context, d *ferry.Delivery) context.Context {
	if len(d.Headers) == 0 {
		return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	return t.propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), carrier(d.Headers))
}

func attributesOf(d *ferry.Delivery) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.MessagingDestinationName(d.Topic), semconv.MessagingConsumerGroupName(d.Group),
		semconv.MessagingDestinationPartitionID(strconv.Itoa(int(d.Ref.Partition))),
		semconv.MessagingMessageID(d.ID), semconv.MessagingMessageBodySize(len(d.Body)),
		attemptKey.Int(d.Attempt), deliveriesKey.Int(d.Deliveries), causeKey.String(d.Cause.String()),
	}
}

// end ends the span with what becomes of the message. ctx is that of the worker.
func (p *process) end(ctx context.Context, err error) {
	if outcome, ok := worker.OutcomeOf(ctx, err); ok {
		p.span.SetAttributes(outcomeKey.String(outcome.String()))
		if err != nil && outcome == driver.Dead {
			p.span.AddEvent("the message becomes a dead letter")
		}
	}
	if err != nil {
		if outcome, ok := worker.Decided(err); !ok || outcome == driver.Retry || outcome == driver.Dead {
			p.span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
			p.span.SetStatus(codes.Error, err.Error())
		}
	}
	p.sends.end(err)
	p.span.End()
}

// crashed ends the span of a handler that panics, and lets the panic go on.
func (p *process) crashed() {
	if v := recover(); v != nil {
		p.span.SetAttributes(semconv.ErrorTypeKey.String("panic"))
		p.span.SetStatus(codes.Error, fmt.Sprint("panic: ", v))
		p.sends.end(fmt.Errorf("panic: %v", v))
		p.span.End()
		panic(v)
	}
}
