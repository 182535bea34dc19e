package plan

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/kafkaserver"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawkgo"
	"github.com/ferrymq/ferry/bench/system/wmkafka"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// Kafka is the bench of the Kafka broker.
func Kafka() Plan {
	ferry := ours.System{
		Driver: "kafka", Start: startKafka,
		Missing: map[system.Feature]string{system.Restarts: "the server keeps the messages"},
		Settings: kafkaserver.Settings + "; kafka.New(kafka.Options{Brokers, Namespace}), ferry.Options{}, " +
			"worker.Options{}: all defaults, raw handlers",
	}
	return Plan{
		Broker: "kafka", Prepare: kafkaserver.Prepare, Ours: ferry, Peers: []system.System{wmkafka.System{}},
		Limit:     rawkgo.System{},
		Scenarios: slices.Concat(kafkaScenarios(), scenario.Named()), Checks: also(kafkaChecks(), serviceTargets()),
	}
}

func startKafka(context.Context) (ours.Backend, error) {
	server, err := kafkaserver.Find()
	if err != nil {
		return ours.Backend{}, err
	}
	open := func(ctx context.Context) (driver.Driver, error) {
		return kafka.New(ctx, kafka.Options{Brokers: []string{server.Addr}, Namespace: server.Name})
	}
	return ours.Backend{Open: open, Usage: server.Usage, Stop: server.Remove}, nil
}

func kafkaScenarios() []scenario.Scenario {
	singles := scenario.ThroughSingles(1024)
	return []scenario.Scenario{
		scenario.Publish(1), scenario.Publish(50), scenario.Publish(200), scenario.Publish(1000),
		scenario.PublishBatches(), scenario.PublishAsync(),
		scenario.Drain(), singles, scenario.Latency(singles).InFull(), scenario.Pickup(), scenario.Delay(),
		scenario.Keyed(0), scenario.Keyed(10_000), scenario.Keyed(1).InFull(),
		scenario.DrainAt(0), scenario.DrainAt(1_000_000), scenario.Slow().InFull(), scenario.Stored(false).InFull(),
		scenario.Idle().InFull(),
	}
}

func kafkaChecks() []Check {
	const raw, peer, without, empty = "raw kgo", "watermill kafka", "ferry kafka without keys",
		"ferry kafka, nothing behind"
	against := func(scenario, system string) []Point { return []Point{{Scenario: scenario, System: system}} }
	checks := []Check{
		{Scenario: "drain", Measure: "rate", With: against("drain", raw), Against: raw, AtLeast: bound(0.7)},
		{Scenario: "drain", Measure: "rate", With: against("drain", peer), Against: peer, AtLeast: bound(3)},
		{Scenario: "delay", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay", Measure: "p99", With: against("pickup", raw), Against: "raw kgo without a delay", Over: true,
			AtMost: bound(5)},
		{Scenario: "keys-10k", Measure: "rate", With: against("keys-none", ""), Against: without, AtLeast: bound(0.7)},
		{Scenario: "drain-at-1M", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
	}
	for s, least := range map[string]float64{"publish-1": 0.85, "publish-50": 0.85, "publish-200": 0.95,
		"publish-1000": 0.95, "publish-batch": 0.85, "publish-async": 0.9} {
		checks = append(checks, Check{Scenario: s, Measure: "rate", With: against(s, raw), Against: raw,
			AtLeast: bound(least)})
	}
	return checks
}
