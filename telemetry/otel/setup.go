package otel

import (
	"context"
	"os"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Setup makes a provider that exports spans by OTLP over HTTP, makes it the global one, and returns a Tracing with it.
// The standard variables configure it: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_BSP_*. With OTEL_SDK_DISABLED=true
// nothing is exported. A sampler by ratio becomes Options.Ratio. Call stop at the end: it sends what is left.
func Setup(ctx context.Context) (t *Tracing, stop func(context.Context) error, err error) {
	o := Options{}
	var providerOptions []sdk.TracerProviderOption
	if !disabled() {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, nil, driver.NewError(ferry.ErrInvalid, "the exporter of traces cannot be made",
				"look at the variables OTEL_EXPORTER_OTLP_*", err)
		}
		providerOptions = append(providerOptions, sdk.WithBatcher(exporter))
	}
	if o.Ratio, err = ratioFromEnvironment(); err != nil {
		return nil, nil, err
	}
	if o.Ratio > 0 {
		providerOptions = append(providerOptions, sdk.WithSampler(sdk.ParentBased(chosen{sdk.TraceIDRatioBased(o.Ratio)})))
	}
	// as it is now: the default one is read once in the life of a process
	named, err := resource.New(ctx, resource.WithFromEnv())
	if err == nil {
		named, err = resource.Merge(resource.Default(), named)
	}
	if err != nil {
		return nil, nil, driver.NewError(ferry.ErrInvalid, "the resource of traces cannot be made",
			"look at OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME", err)
	}
	provider := sdk.NewTracerProvider(append(providerOptions, sdk.WithResource(named))...)
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	o.Provider = provider
	t, err = New(o)
	return t, provider.Shutdown, err
}

func disabled() bool {
	yes, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED"))
	return yes || os.Getenv("OTEL_TRACES_EXPORTER") == "none"
}

// ratioFromEnvironment is the ratio of a sampler by ratio, or zero for another sampler.
func ratioFromEnvironment() (float64, error) {
	if s := os.Getenv("OTEL_TRACES_SAMPLER"); s != "traceidratio" && s != "parentbased_traceidratio" {
		return 0, nil
	}
	arg := os.Getenv("OTEL_TRACES_SAMPLER_ARG")
	if arg == "" {
		return 0, nil
	}
	ratio, err := strconv.ParseFloat(arg, 64)
	if err != nil || ratio < 0 || ratio > 1 {
		return 0, driver.NewError(ferry.ErrInvalid, "OTEL_TRACES_SAMPLER_ARG is not a share: "+strconv.Quote(arg),
			"use 0.01 for one trace in a hundred", nil)
	}
	return ratio, nil
}

// Sampler returns a sampler for providers of your own: what was chosen by Options.Ratio is sampled, of the rest other
// decides.
func Sampler(other sdk.Sampler) sdk.Sampler { return chosen{other} }

type chosen struct{ other sdk.Sampler }

// ShouldSample decides about a span.
func (c chosen) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	for _, a := range p.Attributes {
		if a.Key == Chosen {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return c.other.ShouldSample(p)
}

// Description names the sampler.
func (c chosen) Description() string { return "FerryChosen{" + c.other.Description() + "}" }
