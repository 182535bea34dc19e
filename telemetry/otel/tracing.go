package otel

import (
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Options of Tracing. The zero value traces everything that the global provider samples.
type Options struct {
	// Provider makes the spans. Defaults to the global one.
	Provider trace.TracerProvider
	// Propagator writes and reads the context in headers. Defaults to the W3C formats: trace context and baggage.
	Propagator propagation.TextMapPropagator
	// System is the attribute messaging.system. Defaults to "ferry".
	System string
	// Ratio is the share of messages that begin a trace, of those that are published outside of any span. Messages that do
	// not carry no context and cost next to nothing, and their handlers begin no trace either. Zero: all of them, and the
	// sampler of the provider decides. With a ratio that sampler must take what has the attribute Chosen: that of Setup
	// does.
	Ratio float64
}

// Chosen is the attribute of a span that was chosen by Options.Ratio.
const Chosen = attribute.Key("ferry.trace.chosen")

// Tracing makes spans of what happens to messages.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	fields     []string // headers that it writes
	ratio      float64
	system     attribute.KeyValue
}

// scope is the name under which spans are made.
const scope = "github.com/ferrymq/ferry/telemetry/otel"

// New returns a Tracing.
func New(o Options) (*Tracing, error) {
	if o.Ratio < 0 || o.Ratio > 1 {
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the ratio %v of the tracing is not a share", o.Ratio),
			"use 0.01 for one message in a hundred, or zero for all", nil)
	}
	if o.Provider == nil {
		o.Provider = otel.GetTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	if o.System == "" {
		o.System = "ferry"
	}
	return &Tracing{
		tracer:     o.Provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: o.Propagator,
		fields:     o.Propagator.Fields(),
		ratio:      o.Ratio,
		system:     semconv.MessagingSystemKey.String(o.System),
	}, nil
}

// chooses reports whether a message that belongs to no trace begins one.
func (t *Tracing) chooses() bool {
	return t.ratio == 0 || rand.Float64() < t.ratio //nolint:gosec // a sample, not a secret
}

// carrier reads and writes headers. It owns its map.
type carrier map[string]string

func (c carrier) Get(key string) string { return c[key] }
func (c carrier) Set(key, value string) { c[key] = value }
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}
