// Package slog adds to log lines which message they are about and which trace they belong to.
//
//	logger := slog.New(ferryslog.NewHandler(slog.NewJSONHandler(os.Stderr, nil)))
//	w.Use(ferryslog.Middleware())
//	...
//	logger.InfoContext(ctx, "billed") // in a handler: topic, group, message_id, attempt, and trace_id and span_id where there is a span
package slog

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// Handler adds attributes from the context, and passes lines on.
type Handler struct {
	next slog.Handler
}

// NewHandler wraps a handler.
func NewHandler(next slog.Handler) *Handler { return &Handler{next} }

var _ slog.Handler = (*Handler)(nil)

// Enabled asks the wrapped handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle adds what the context tells.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	d, handling := ctx.Value(deliveryKey{}).(*ferry.Delivery)
	span := trace.SpanContextFromContext(ctx)
	if !handling && !span.IsValid() {
		return h.next.Handle(ctx, r)
	}
	r = r.Clone() // it may be shared with other handlers
	if handling {
		r.AddAttrs(slog.String("topic", d.Topic), slog.String("group", d.Group), slog.String("message_id", d.ID), slog.Int("attempt", d.Attempt))
	}
	if span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs passes attributes on.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs)}
}

// WithGroup passes a group on.
func (h *Handler) WithGroup(name string) slog.Handler { return &Handler{h.next.WithGroup(name)} }

type deliveryKey struct{}

// Middleware tells log lines of a handler which message it handles. Together with tracing the order does not matter.
func Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			return next(context.WithValue(ctx, deliveryKey{}, d), d)
		}
	}
}
