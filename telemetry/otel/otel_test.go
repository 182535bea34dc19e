package otel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/telemetry/otel"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

// rig is a broker whose traces are kept.
type rig struct {
	*testing.T
	spans   *tracetest.SpanRecorder
	tracing *otel.Tracing
	broker  *ferry.Broker
	tracer  trace.Tracer
}

func virtual(t *testing.T, o otel.Options, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, o)
		b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Hooks: r.tracing.Hooks()}})
		if err != nil {
			t.Fatal(err)
		}
		r.broker = b
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		f(r)
	})
}

func newRig(t *testing.T, o otel.Options) *rig {
	t.Helper()
	r := &rig{T: t, spans: tracetest.NewSpanRecorder()}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(r.spans),
		sdk.WithSampler(sdk.ParentBased(otel.Sampler(sdk.AlwaysSample()))))
	r.tracer = provider.Tracer("test")
	o.Provider = provider
	var err error
	if r.tracing, err = otel.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

// work runs a worker until the test ends.
func (r *rig) work(register func(w *worker.Worker)) {
	r.Helper()
	w := worker.New(r.broker, worker.Options{MaxAttempts: 2, Retry: ferry.Delays(time.Second)})
	register(w)
	runtest.Start(r, w.Run)
	<-w.Ready()
}

// ended returns the ended spans of a name, in the order in which they ended.
func (r *rig) ended(name string) (found []sdk.ReadOnlySpan) {
	for _, s := range r.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func (r *rig) one(name string) sdk.ReadOnlySpan {
	r.Helper()
	found := r.ended(name)
	if len(found) != 1 {
		r.Fatalf("%d spans %q, want one; there are %v", len(found), name, r.names())
	}
	return found[0]
}

func (r *rig) names() (all []string) {
	for _, s := range r.spans.Ended() {
		all = append(all, s.Name())
	}
	return all
}

func attributes(s sdk.ReadOnlySpan) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes() {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

func (r *rig) has(s sdk.ReadOnlySpan, want map[string]string) {
	r.Helper()
	got := attributes(s)
	for k, v := range want {
		if got[k] != v {
			r.Errorf("%s: %s is %q, want %q", s.Name(), k, got[k], v)
		}
	}
}

func below(parent, child sdk.ReadOnlySpan) bool {
	return child.Parent().SpanID() == parent.SpanContext().SpanID() &&
		child.SpanContext().TraceID() == parent.SpanContext().TraceID()
}

// TestOneTrace: a request publishes, the first attempt fails, the second emits a follow-up and publishes another
// message: all of it is one trace.
func TestOneTrace(t *testing.T) {
	virtual(t, otel.Options{}, func(r *rig) {
		r.work(func(w *worker.Worker) {
			w.Use(r.tracing.Middleware())
			worker.HandleRaw(w, "orders", func(ctx context.Context, d *ferry.Delivery) error {
				if got := baggage.FromContext(ctx).Member("tenant").Value(); got != "acme" {
					t.Errorf("baggage tenant is %q", got)
				}
				if d.Attempt == 1 {
					return errors.New("try again")
				}
				if _, err := ferry.Publish(ctx, r.broker, "audit", "billed"); err != nil {
					return err
				}
				return worker.Emit(ctx, "mails", "thank you")
			}, worker.Group("billing"))
			worker.HandleRaw(w, "mails", func(context.Context, *ferry.Delivery) error { return nil })
		})
		tenant, _ := baggage.NewMember("tenant", "acme")
		bag, _ := baggage.New(tenant)
		ctx, request := r.tracer.Start(baggage.ContextWithBaggage(t.Context(), bag), "request")
		headers := map[string]string{"mine": "1"}
		if _, err := r.broker.Publish(ctx,
			&ferry.Message{Topic: "orders", ID: "order-1", Body: []byte("boat"), Headers: headers}); err != nil {
			t.Fatal(err)
		}
		request.End()
		time.Sleep(5 * time.Second)
		if len(headers) != 1 {
			t.Errorf("the publisher's headers became %v", headers)
		}
		send, attempts := r.one("send orders"), r.ended("process orders")
		if len(attempts) != 2 {
			t.Fatalf("%d attempts: %v", len(attempts), r.names())
		}
		if !below(r.one("request"), send) || !below(send, attempts[0]) || !below(send, attempts[1]) {
			t.Error("request, send and attempts are not above each other")
		}
		if !below(attempts[1], r.one("send audit")) || !below(attempts[1], r.one("send mails")) ||
			!below(r.one("send mails"), r.one("process mails")) {
			t.Error("what the handler sent is not below its attempt")
		}
		if send.SpanKind() != trace.SpanKindProducer || attempts[0].SpanKind() != trace.SpanKindConsumer {
			t.Errorf("kinds %v and %v", send.SpanKind(), attempts[0].SpanKind())
		}
		if links := attempts[0].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() {
			t.Errorf("links %v", links)
		}
		r.has(send, map[string]string{"messaging.system": "ferry", "messaging.operation.type": "send",
			"messaging.destination.name": "orders", "messaging.message.id": "order-1", "messaging.message.body.size": "4"})
		r.has(attempts[0], map[string]string{"messaging.operation.type": "process",
			"messaging.consumer.group.name": "billing", "messaging.message.id": "order-1",
			"ferry.attempt": "1", "ferry.outcome": "retry", "ferry.cause": "first", "error.type": "_OTHER"})
		r.has(attempts[1], map[string]string{"ferry.attempt": "2", "ferry.outcome": "ack", "ferry.cause": "retry"})
		r.has(r.one("send mails"), map[string]string{"ferry.follow_up": "true"})
		if attempts[0].Status().Code != codes.Error || attempts[1].Status().Code == codes.Error {
			t.Errorf("status %v and %v", attempts[0].Status(), attempts[1].Status())
		}
		if n := len(r.spans.Started()) - len(r.spans.Ended()); n != 0 {
			t.Errorf("%d spans never ended", n)
		}
	})
}

// TestDeadLettersAndPanics are seen.
func TestDeadLettersAndPanics(t *testing.T) {
	virtual(t, otel.Options{}, func(r *rig) {
		r.work(func(w *worker.Worker) {
			w.Use(r.tracing.Middleware())
			worker.HandleRaw(w, "orders", func(ctx context.Context, d *ferry.Delivery) error {
				switch string(d.Body) {
				case "fatal":
					_ = worker.Emit(ctx, "mails", "never sent")
					return worker.Fatal(errors.New("no such user"))
				case "park":
					if d.Cause.String() == "first" {
						return worker.Park(time.Second)
					}
					return nil
				}
				panic("at the disco")
			})
		})
		for _, body := range []string{"fatal", "park", "panic"} {
			if _, err := r.broker.Publish(t.Context(),
				&ferry.Message{Topic: "orders", ID: body, Body: []byte(body)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		of := func(id string) (found []sdk.ReadOnlySpan) {
			for _, s := range r.ended("process orders") {
				if attributes(s)["messaging.message.id"] == id {
					found = append(found, s)
				}
			}
			return found
		}
		fatal, parked, panics := of("fatal"), of("park"), of("panic")
		if len(fatal) != 1 || len(parked) != 2 || len(panics) != 2 {
			t.Fatalf("%d, %d and %d attempts", len(fatal), len(parked), len(panics))
		}
		r.has(fatal[0], map[string]string{"ferry.outcome": "dead"})
		if len(fatal[0].Events()) != 1 || fatal[0].Status().Code != codes.Error ||
			r.one("send mails").Status().Code != codes.Error {
			t.Errorf("a dead letter: %v, %v", fatal[0].Events(), fatal[0].Status())
		}
		r.has(parked[0], map[string]string{"ferry.outcome": "release"})
		if parked[0].Status().Code == codes.Error {
			t.Error("what is parked has failed")
		}
		r.has(panics[1], map[string]string{"error.type": "panic"})
		if !strings.Contains(panics[1].Status().Description, "disco") {
			t.Errorf("%v", panics[1].Status())
		}
	})
}

// TestRatio: of many messages some begin a trace, the others carry nothing, and their handlers begin none.
func TestRatio(t *testing.T) {
	virtual(t, otel.Options{Ratio: 0.1}, func(r *rig) {
		var carried atomic.Int64
		r.work(func(w *worker.Worker) {
			w.Use(r.tracing.Middleware())
			worker.HandleRaw(w, "orders", func(ctx context.Context, d *ferry.Delivery) error {
				if d.Headers["traceparent"] != "" {
					carried.Add(1)
				}
				return nil
			}, worker.Concurrency(1))
		})
		const n = 2000
		for range n {
			if _, err := ferry.Publish(t.Context(), r.broker, "orders", 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		sent, handled := len(r.ended("send orders")), len(r.ended("process orders"))
		if sent != handled || sent != int(carried.Load()) || sent < n/20 || sent > n/5 {
			t.Errorf("%d of %d sent, %d handled, %d carry a context", sent, n, handled, carried.Load())
		}
		ctx, span := r.tracer.Start(t.Context(), "request")
		if _, err := ferry.Publish(ctx, r.broker, "orders", 1); err != nil {
			t.Fatal(err)
		}
		span.End()
		if now := len(r.ended("send orders")); now != sent+1 {
			t.Error("a message of a trace is not in it")
		}
	})
}

// TestFailedPublish is seen with the kind of its error.
func TestFailedPublish(t *testing.T) {
	virtual(t, otel.Options{}, func(r *rig) {
		if err := r.broker.Driver().EnsureTopic(t.Context(), "orders", ferry.TopicConfig{MaxMessages: 1}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, _ = ferry.Publish(t.Context(), r.broker, "orders", 1)
		}
		sends := r.ended("send orders")
		if len(sends) != 2 || sends[1].Status().Code != codes.Error {
			t.Fatalf("%v", r.names())
		}
		r.has(sends[1], map[string]string{"error.type": "full"})
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, ratio := range []float64{-1, 2} {
		if _, err := otel.New(otel.Options{Ratio: ratio}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("ratio %v: %v", ratio, err)
		}
	}
}

func TestSamplerTakesWhatWasChosen(t *testing.T) {
	t.Parallel()
	s := otel.Sampler(sdk.NeverSample())
	if s.ShouldSample(sdk.SamplingParameters{}).Decision == sdk.RecordAndSample {
		t.Error("the other sampler is not asked")
	}
	if s.ShouldSample(sdk.SamplingParameters{
		Attributes: []attribute.KeyValue{otel.Chosen.Bool(true)}}).Decision != sdk.RecordAndSample {
		t.Error("what was chosen is not sampled")
	}
	if !slices.Contains([]string{"FerryChosen{AlwaysOffSampler}"}, s.Description()) {
		t.Error(fmt.Sprint(s.Description()))
	}
}

// A publish that is refused before it is sent has a span as well, which ends and says why.
func TestRefusedPublish(t *testing.T) {
	virtual(t, otel.Options{}, func(r *rig) {
		if _, err := r.broker.Publish(r.Context(), &ferry.Message{Topic: "no topic"}); !errors.Is(err, ferry.ErrInvalid) {
			t.Fatal(err)
		}
		if sends := r.ended("send no topic"); len(sends) != 1 || sends[0].Status().Code != codes.Error {
			t.Errorf("%d spans: %v", len(sends), sends)
		}
	})
}
