package slog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	ferryslog "github.com/ferrymq/ferry/telemetry/slog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLinesOfAHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(ferryslog.NewHandler(slog.NewJSONHandler(&out, nil))).With("app", "shop")
	handler := ferryslog.Middleware()(func(ctx context.Context, _ *ferry.Delivery) error {
		log.InfoContext(ctx, "billed", "order", 7)
		return nil
	})
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	d := &ferry.Delivery{Message: &ferry.Message{ID: "m-1", Topic: "orders"}, Group: "billing", Attempt: 2}
	if err := handler(trace.ContextWithSpanContext(t.Context(), span), d); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"level": "INFO", "msg": "billed", "app": "shop", "order": 7.0, "topic": "orders",
		"group": "billing", "message_id": "m-1", "attempt": 2.0,
		"trace_id": "01000000000000000000000000000000", "span_id": "0200000000000000"}
	if diff := cmp.Diff(want, line(t, &out)); diff != "" {
		t.Error(diff)
	}
}

// The ids stand outside of groups, where whoever looks for a trace finds them; everything else is where it was put.
func TestLinesOfAGroup(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(ferryslog.NewHandler(slog.NewJSONHandler(&out, nil))).With("app", "shop").WithGroup("order").With("id",
		7).WithGroup("item").With("n", 1)
	handler := ferryslog.Middleware()(func(ctx context.Context, _ *ferry.Delivery) error {
		log.InfoContext(ctx, "billed", "price", 3)
		return nil
	})
	d := &ferry.Delivery{Message: &ferry.Message{ID: "m-1", Topic: "orders"}, Group: "billing", Attempt: 2}
	if err := handler(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"level": "INFO", "msg": "billed", "app": "shop", "topic": "orders", "group": "billing",
		"message_id": "m-1", "attempt": 2.0,
		"order": map[string]any{"id": 7.0, "item": map[string]any{"n": 1.0, "price": 3.0}}}
	if diff := cmp.Diff(want, line(t, &out)); diff != "" {
		t.Error(diff)
	}
}

// TestConformance holds the handler against the rules of slog.
func TestConformance(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return ferryslog.NewHandler(slog.NewJSONHandler(&out, nil))
	}, func(t *testing.T) map[string]any {
		var got map[string]any
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		return got
	})
}

func TestOtherLinesAreLeftAlone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(ferryslog.NewHandler(slog.NewJSONHandler(&out, nil)))
	log.WithGroup("g").Info("hello", "a", 1)
	log.Debug("not shown")
	want := map[string]any{"level": "INFO", "msg": "hello", "g": map[string]any{"a": 1.0}}
	if diff := cmp.Diff(want, line(t, &out)); diff != "" {
		t.Error(diff)
	}
}

func line(t *testing.T, out *bytes.Buffer) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	delete(got, "time")
	return got
}
