package plan

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/asynq"
	"github.com/ferrymq/ferry/bench/system/bullmq"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawredis"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
)

// Redis is the bench of the Redis broker.
func Redis() Plan {
	ferry := ours.System{
		Driver: "redis", Start: startRedis,
		Missing: map[system.Feature]string{system.Restarts: "the server keeps the messages"},
		Settings: redisserver.Settings + "; redis.New(redis.Options{URL}), ferry.Options{}, worker.Options{}: all " +
			"defaults, raw handlers",
	}
	alone := ferry
	alone.Driver, alone.Bare = "redis, driver alone", true
	alone.Settings = redisserver.Settings + "; redis.New(redis.Options{URL}); Subscribe, Receive and Settle of 100 by 4 " +
		"loops, without package worker"
	return Plan{
		Broker: "redis", Ours: ferry, Variants: []Variant{{System: alone, Scenarios: []string{"drain"}}},
		Peers: []system.System{asynq.System{}, bullmq.New()}, Limit: rawredis.System{},
		Scenarios: slices.Concat(redisScenarios(), scenario.Named()), Checks: also(redisChecks(alone.Info().Name),
			callTargets(), hubTargets(8_000, 25_000, 7_000, 15_000), serviceTargets()),
	}
}

func startRedis(context.Context) (ours.Backend, error) {
	server, err := redisserver.Start()
	if err != nil {
		return ours.Backend{}, err
	}
	open := func(ctx context.Context) (driver.Driver, error) {
		return redis.New(ctx, redis.Options{URL: server.URL()})
	}
	return ours.Backend{Open: open, Usage: server.Usage, Stop: server.Close}, nil
}

func redisScenarios() []scenario.Scenario {
	singles := scenario.ThroughSingles(1024)
	return []scenario.Scenario{
		scenario.Publish(1).InFull(), scenario.Publish(50), scenario.Publish(200).InFull(), scenario.PublishBatches(),
		scenario.PublishAsync().InFull(),
		scenario.Drain(),
		singles, scenario.ThroughBatches(1024).InFull(),
		scenario.Latency(singles).InFull(), scenario.Pickup(), scenario.Delay(), scenario.DelayLoaded(singles),
		scenario.Keyed(0), scenario.Keyed(10_000), scenario.Keyed(100).InFull(), scenario.Keyed(1),
		scenario.DrainAt(0), scenario.DrainAt(100_000), scenario.DrainAt(1_000_000).InFull(),
		scenario.Slow().InFull(), scenario.Stored(false), scenario.Stored(true), scenario.Leftover(), scenario.Idle(),
	}
}

// redisChecks are the targets. Beside those of rates stand the processor times of the server, which other load on the
// machine disturbs less.
func redisChecks(alone string) []Check {
	const raw, without, empty = "raw Redis", "ferry redis without keys", "ferry redis, nothing behind"
	against := func(scenario, system string) []Point { return []Point{{Scenario: scenario, System: system}} }
	return []Check{
		{Scenario: "publish-50", Measure: "rate", With: against("publish-50", "asynq"), Against: "asynq", AtLeast: bound(3)},
		{Scenario: "publish-batch", Measure: "rate", With: against("publish-50", "asynq"), Against: "asynq, 50 callers",
			AtLeast: bound(3.5)},
		{Scenario: "publish-batch", Measure: "rate", With: against("publish-batch", raw), Against: raw, AtLeast: bound(0.6)},
		{Scenario: "publish-batch", Measure: "server", AtMost: bound(4)},
		{Scenario: "drain", Measure: "rate", With: against("drain", "asynq"), Against: "asynq", AtLeast: bound(20)},
		{Scenario: "drain", Measure: "rate", With: against("drain", "BullMQ"), Against: "BullMQ", AtLeast: bound(8)},
		{Scenario: "drain", Measure: "rate", Of: alone, With: against("drain", raw), Against: raw, AtLeast: bound(0.65)},
		{Scenario: "drain", Measure: "server", AtMost: bound(3.5)},
		{Scenario: "pickup", Measure: "p99", AtMost: bound(3)},
		{Scenario: "delay", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay", Measure: "p99", AtMost: bound(10)},
		{Scenario: "delay-loaded", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay-loaded", Measure: "p99", AtMost: bound(50)},
		{Scenario: "keys-10k", Measure: "rate", With: against("keys-none", ""), Against: without, AtLeast: bound(0.8)},
		{Scenario: "keys-100", Measure: "rate", With: against("keys-none", ""), Against: without},
		{Scenario: "keys-1", Measure: "rate", AtLeast: bound(50_000)},
		{Scenario: "drain-at-100k", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
		{Scenario: "drain-at-1M", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
		{Scenario: "stored", Measure: "beyond", AtMost: bound(300)},
		{Scenario: "stored-keys", Measure: "beyond", AtMost: bound(380)},
		{Scenario: "leftover", Measure: "keys", AtMost: bound(0)},
		{Scenario: "leftover", Measure: "bytes", AtMost: bound(1000)},
		{Scenario: "idle", Measure: "commands", AtMost: bound(5)},
		{Scenario: "idle", Measure: "commands", With: against("idle", "asynq"), Against: "asynq"},
		{Scenario: "idle", Measure: "commands", With: against("idle", "BullMQ"), Against: "BullMQ"},
	}
}
