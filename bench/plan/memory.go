package plan

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/gochannel"
	"github.com/ferrymq/ferry/bench/system/natsjs"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawchan"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// Memory is the bench of the memory broker.
func Memory() Plan {
	ferry := ours.System{
		Driver: "memory", Settings: "memory.New(ctx, memory.Options{}), ferry.Options{}, worker.Options{}: all defaults, " +
			"raw handlers",
		Missing: map[system.Feature]string{system.Stores: "messages are on the heap",
			system.Restarts: "messages are on the heap"},
		Start: func(context.Context) (ours.Backend, error) {
			return ours.Backend{Open: func(ctx context.Context) (driver.Driver,
				error) {
				return memory.New(ctx, memory.Options{})
			}}, nil
		},
	}
	peers := []system.System{gochannel.System{}, natsjs.System{Storage: jetstream.MemoryStorage}}
	return Plan{
		Broker: "memory", Ours: ferry, Peers: peers, Limit: rawchan.System{},
		Scenarios: slices.Concat(memoryScenarios(), scenario.Named()),
		Checks:    also(memoryChecks(peers), hubTargets(15_000, 50_000, 12_000, 30_000), serviceTargets()),
	}
}

func memoryScenarios() []scenario.Scenario {
	singles := scenario.ThroughSingles(1024)
	return []scenario.Scenario{
		scenario.Publish(1), scenario.Publish(50), scenario.Publish(200), scenario.PublishBatches(), scenario.PublishAsync(),
		scenario.Drain(),
		scenario.ThroughSingles(128), scenario.ThroughBatches(128), scenario.ThroughGuarded(128),
		scenario.ThroughGuardedByAll(128),
		singles, scenario.ThroughBatches(1024), scenario.ThroughAsync(1024), scenario.ThroughFlood(1024),
		scenario.Latency(singles), scenario.Pickup(), scenario.Delay(),
		scenario.Keyed(0), scenario.Keyed(10_000), scenario.Keyed(100), scenario.Keyed(1),
		scenario.DrainAt(0), scenario.DrainAt(100_000), scenario.DrainAt(1_000_000).InFull(),
		scenario.Slow(), scenario.Heap(), scenario.Idle(),
		scenario.Poisoned(false), scenario.Poisoned(true), scenario.DelayedHeap(),
	}
}

func memoryChecks(peers []system.System) []Check {
	var best, flood []Point // whichever way of publishing suits a peer best; and without flow control
	for _, s := range []string{"through-single-1KB", "through-batch-1KB", "through-async-1KB"} {
		for _, p := range peers {
			best = append(best, Point{Scenario: s, System: p.Info().Name})
		}
	}
	for _, p := range peers {
		flood = append(flood, Point{Scenario: "through-flood-1KB", System: p.Info().Name})
	}
	const bestPeer = "best peer, best way"
	channel := gochannel.System{}.Info().Name
	ours := func(scenario string) []Point { return []Point{{Scenario: scenario}} }
	return []Check{
		{Scenario: "through-single-128B", Measure: "rate", AtLeast: bound(1e6)},
		{Scenario: "through-batch-128B", Measure: "rate", AtLeast: bound(2e6)},
		{Scenario: "through-guarded-128B", Measure: "rate", With: ours("through-batch-128B"),
			Against: "ferry memory, unguarded", AtLeast: bound(0.85)},
		{Scenario: "through-guarded-4-128B", Measure: "rate", With: ours("through-batch-128B"),
			Against: "ferry memory, unguarded", AtLeast: bound(0.85)},
		{Scenario: "through-single-128B", Measure: "allocs", AtMost: bound(5)},
		{Scenario: "through-batch-128B", Measure: "allocs", AtMost: bound(5)},
		{Scenario: "through-single-1KB", Measure: "rate", With: best, Against: bestPeer, AtLeast: bound(4)},
		{Scenario: "through-batch-1KB", Measure: "rate", With: best, Against: bestPeer, AtLeast: bound(5)},
		{Scenario: "through-flood-1KB", Measure: "rate", With: flood, Against: "best peer", AtLeast: bound(5)},
		{Scenario: "latency", Measure: "p99", With: []Point{{Scenario: "latency", System: channel}}, Against: channel,
			AtMost: bound(1)},
		{Scenario: "pickup", Measure: "p99", AtMost: bound(0.5)},
		{Scenario: "delay", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay", Measure: "p99", AtMost: bound(5)},
		{Scenario: "keys-10k", Measure: "rate", With: ours("keys-none"), Against: "ferry memory without keys"},
		{Scenario: "keys-100", Measure: "rate", With: ours("keys-none"), Against: "ferry memory without keys"},
		{Scenario: "keys-1", Measure: "rate", With: ours("keys-none"), Against: "ferry memory without keys"},
		{Scenario: "drain-at-100k", Measure: "rate", With: ours("drain-at-0"), Against: "ferry memory, nothing behind",
			AtLeast: bound(0.9)},
		{Scenario: "drain-at-1M", Measure: "rate", With: ours("drain-at-0"), Against: "ferry memory, nothing behind",
			AtLeast: bound(0.9)},
		{Scenario: "poison-one", Measure: "p99", With: ours("poison-none"), Against: "ferry memory, none poisoned",
			AtMost: bound(1.1)},
		{Scenario: "delayed-heap", Measure: "beyond", AtMost: bound(400)},
	}
}
