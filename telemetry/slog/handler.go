// Package slog adds to log lines which message they are about and which trace they belong to.
//
//	logger := slog.New(ferryslog.NewHandler(slog.NewJSONHandler(os.Stderr, nil)))
//	w.Use(ferryslog.Middleware())
//	...
//	logger.InfoContext(ctx, "billed")
//
// In a handler the line has topic, group, message_id, attempt, and where there is a span trace_id and span_id.
package slog

import (
	"context"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// Handler adds attributes from the context, and passes lines on. They stand outside of every group, where whoever looks
// for a trace finds them.
type Handler struct {
	next slog.Handler // with everything
	// Of a logger with a group, outside is the handler before it, and inside what was added since.
	outside slog.Handler
	inside  []func(slog.Handler) slog.Handler
}

// NewHandler wraps a handler.
func NewHandler(next slog.Handler) *Handler { return &Handler{next: next} }

var _ slog.Handler = (*Handler)(nil)

// Enabled asks the wrapped handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle adds what the context tells.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	attrs := told(ctx)
	switch {
	case len(attrs) == 0:
		return h.next.Handle(ctx, r)
	case h.outside != nil:
		next := h.outside.WithAttrs(attrs)
		for _, add := range h.inside {
			next = add(next)
		}
		return next.Handle(ctx, r)
	}
	r = r.Clone() // it may be shared with other handlers
	r.AddAttrs(attrs...)
	return h.next.Handle(ctx, r)
}

// told is what a context tells.
func told(ctx context.Context) (attrs []slog.Attr) {
	if d, handling := ctx.Value(deliveryKey{}).(*ferry.Delivery); handling {
		attrs = append(attrs, slog.String("topic", d.Topic), slog.String("group", d.Group), slog.String("message_id", d.ID),
			slog.Int("attempt", d.Attempt))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		attrs = append(attrs, slog.String("trace_id", span.TraceID().String()),
			slog.String("span_id", span.SpanID().String()))
	}
	return attrs
}

// WithAttrs passes attributes on.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if h.outside == nil {
		return &Handler{next: h.next.WithAttrs(attrs)}
	}
	return h.with(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

// WithGroup passes a group on.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h // as slog.Handler asks
	}
	return h.with(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

// with returns the handler with one more step inside of a group.
func (h *Handler) with(add func(slog.Handler) slog.Handler) *Handler {
	outside := h.outside
	if outside == nil {
		outside = h.next
	}
	return &Handler{next: add(h.next), outside: outside, inside: append(slices.Clip(h.inside), add)}
}

type deliveryKey struct{}

// Middleware tells log lines of a handler which message it handles. Together with tracing the order does not matter.
func Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			return next(context.WithValue(ctx, deliveryKey{}, d), d)
		}
	}
}
