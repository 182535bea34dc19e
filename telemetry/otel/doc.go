// Package otel makes the way of messages visible as OpenTelemetry traces.
//
//	tracing, err := otel.New(otel.Options{})
//	broker, err := open.URL(ctx, url, ferry.Options{Hooks: tracing.Hooks()})
//	w := worker.New(broker, worker.Options{})
//	w.Use(tracing.Middleware())
//
// A publish is a span "send TOPIC", whose W3C context travels in the headers of the message (traceparent, tracestate,
// baggage), on every broker. Each attempt of a handler is a span "process TOPIC" below it, with its outcome; what a
// handler publishes or emits is below that. So retries, dead letters and follow-ups of a message are one trace,
// whatever process they happen in.
//
// [Setup] makes a provider that exports by OTLP over HTTP, configured by the standard OTEL_* variables.
//
// Names and attributes are those of the semantic conventions for messaging, version 1.43, which are not stable yet:
// they may change with a version of Ferry.
package otel
