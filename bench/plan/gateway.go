package plan

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/elasticmq"
	"github.com/ferrymq/ferry/bench/system/gatewayjson"
	"github.com/ferrymq/ferry/bench/system/natsjs"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawhttp"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
)

// Gateway is the bench of a memory broker behind HTTP: through ferry://, and as programs in other languages speak to
// it.
func Gateway() Plan {
	const behind = "server and clients in one process, HTTP/1.1 on this machine; "
	inMemory := func(ctx context.Context) (driver.Driver, error) { return memory.New(ctx, memory.Options{}) }
	missing := map[system.Feature]string{system.Stores: "messages are on the heap",
		system.Restarts: "messages are on the heap", system.Polls: "its receives wait, too, and are measured in JSON"}
	ferry := ours.System{
		Driver: "gateway, ferry://", Settings: behind + "gateway.Options{} on a memory broker, driver/remote, " +
			"worker.Options{}: all defaults, raw handlers",
		Missing: missing, Start: func(ctx context.Context) (ours.Backend, error) { return startGateway(ctx, inMemory) },
	}
	text, frames, python := gatewayjson.System{}, gatewayjson.System{Frames: true}, gatewayjson.Python{}
	embedded := Disk().Ours
	nats := natsjs.System{Storage: jetstream.MemoryStorage}
	return Plan{
		Broker: "gateway", Prepare: elasticmq.Prepare, Ours: ferry,
		Variants: []Variant{
			{System: text, Scenarios: []string{"publish-64-256B", "publish-batch-256B", "drain", "polls"}},
			{System: frames, Scenarios: []string{"publish-batch-256B"}},
			{System: python, Scenarios: []string{"publish-batch-256B"}},
			{System: embedded, Scenarios: []string{"drain"}},
		},
		Peers: []system.System{nats, elasticmq.System{}}, Limit: rawhttp.System{},
		Scenarios: []scenario.Scenario{scenario.PublishSmall(64), scenario.PublishSmallBatches(), scenario.Drain(),
			scenario.Polls()},
		Checks: append(gatewayChecks(text.Info().Name, frames.Info().Name, embedded.Info().Name),
			append(aheadOf(nats.Info().Name), Check{Scenario: "publish-batch-256B", Measure: "rate", Of: python.Info().Name,
				AtLeast: bound(20_000)})...),
	}
}

func gatewayChecks(text, frames, embedded string) []Check {
	const singles, batches, raw = "publish-64-256B", "publish-batch-256B", "raw net/http"
	sqs := elasticmq.System{}.Info().Name
	times5 := func(scenario, of string) Check {
		return Check{Scenario: scenario, Measure: "rate", Of: of, With: []Point{{Scenario: scenario, System: sqs}},
			Against: sqs, AtLeast: bound(5)}
	}
	return []Check{
		times5(singles, text), times5(batches, text), times5("drain", text),
		{Scenario: singles, Measure: "rate", Of: text, With: []Point{{Scenario: singles, System: raw}}, Against: raw,
			AtLeast: bound(0.6)},
		{Scenario: batches, Measure: "rate", Of: text, AtLeast: bound(100_000)},
		{Scenario: batches, Measure: "rate", Of: frames, AtLeast: bound(250_000)},
		{Scenario: "drain", Measure: "rate", Of: text, AtLeast: bound(100_000)},
		{Scenario: "drain", Measure: "rate", With: []Point{{Scenario: "drain", System: embedded}}, Against: embedded,
			AtLeast: bound(0.5)},
		{Scenario: "polls", Measure: "memory", Of: text, AtMost: bound(100)},
	}
}

// aheadOf are the comparisons with a peer whose publish is a request and its reply, too, and whose consumer
// acknowledges what it has handled.
func aheadOf(peer string) []Check {
	var checks []Check
	for _, scenario := range []string{"publish-64-256B", "publish-batch-256B", "drain"} {
		checks = append(checks, Check{Scenario: scenario, Measure: "rate", With: []Point{{Scenario: scenario, System: peer}},
			Against: peer, AtLeast: bound(1)})
	}
	return checks
}

// startGateway serves a broker, and opens it through the server.
func startGateway(ctx context.Context, open func(ctx context.Context) (driver.Driver, error)) (ours.Backend, error) {
	d, err := open(ctx)
	if err != nil {
		return ours.Backend{}, err
	}
	b, err := ferry.New(d, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return ours.Backend{}, errors.Join(err, d.Close(ctx))
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		return ours.Backend{}, errors.Join(err, b.Close(ctx))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ours.Backend{}, errors.Join(err, b.Close(ctx))
	}
	who := &auth.Identity{Kind: auth.KindToken, Name: "bench", Grants: []auth.Grant{{Role: auth.Administrator}}}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	url := strings.Join([]string{"ferry", l.Addr().String()}, "://")
	return ours.Backend{
		Open: func(ctx context.Context) (driver.Driver, error) { return remote.New(ctx, remote.Options{URL: url}) },
		Stop: func() error {
			err := errors.Join(g.Close(context.Background()), s.Close())
			<-served
			return errors.Join(err, b.Close(context.Background()))
		},
	}, nil
}
