package otel_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/telemetry/otel"
)

// TestSetupExports: with nothing but the standard variables spans arrive at a collector.
func TestSetupExports(t *testing.T) {
	var arrived atomic.Pointer[string]
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := r.URL.Path + " " + string(body)
		arrived.Store(&text)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "shop")
	tracing, stop, err := otel.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Hooks: tracing.Hooks()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
		t.Fatal(err)
	}
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := arrived.Load()
	if got == nil || !strings.HasPrefix(*got, "/v1/traces ") || !strings.Contains(*got, "send orders") ||
		!strings.Contains(*got, "shop") {
		t.Errorf("the collector got %v", got)
	}
}

func TestSetupReadsTheSampler(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "two")
	if _, _, err := otel.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER_ARG") {
		t.Errorf("%v", err)
	}
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.01")
	_, stop, err := otel.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}
