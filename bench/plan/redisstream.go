package plan

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawstream"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/bench/system/wmstream"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
)

// RedisStream is the bench of the broker on Redis Streams.
func RedisStream() Plan {
	ferry := ours.System{
		Driver: "redisstream", Start: startRedisStream,
		Missing: map[system.Feature]string{system.Restarts: "the server keeps the messages"},
		Settings: redisserver.Settings + "; redisstream.New(redisstream.Options{URL}), ferry.Options{}, worker.Options{}: " +
			"all defaults, raw handlers",
	}
	alone := ferry
	alone.Driver, alone.Bare = "redisstream, driver alone", true
	alone.Settings = redisserver.Settings + "; redisstream.New(redisstream.Options{URL}); Subscribe, Receive and Settle " +
		"of 100 by 4 loops, without package worker"
	return Plan{
		Broker: "redisstream", Ours: ferry, Variants: []Variant{{System: alone, Scenarios: []string{"drain"}},
			// It publishes as the peer with more of them does.
			{System: wmstream.System{Subscribers: 1}, Scenarios: []string{"drain", "through-single-1KB", "pickup"}}},
		Peers: []system.System{wmstream.System{Subscribers: 8}}, Limit: rawstream.System{},
		Scenarios: slices.Concat(redisScenarios(), scenario.Named()),
		Checks:    also(redisStreamChecks(alone.Info().Name), serviceTargets()),
	}
}

func startRedisStream(context.Context) (ours.Backend, error) {
	server, err := redisserver.Start()
	if err != nil {
		return ours.Backend{}, err
	}
	open := func(ctx context.Context) (driver.Driver, error) {
		return redisstream.New(ctx, redisstream.Options{URL: server.URL()})
	}
	return ours.Backend{Open: open, Usage: server.Usage, Stop: server.Close}, nil
}

func redisStreamChecks(alone string) []Check {
	const (
		raw, eight, one = "raw streams", "watermill redisstream", "watermill redisstream, 1 subscriber"
		without, empty  = "ferry redisstream without keys", "ferry redisstream, nothing behind"
	)
	against := func(scenario, system string) []Point { return []Point{{Scenario: scenario, System: system}} }
	return []Check{
		{Scenario: "publish-50", Measure: "rate", With: against("publish-50", eight), Against: eight, AtLeast: bound(2)},
		{Scenario: "publish-batch", Measure: "rate", With: against("publish-batch", eight), Against: eight,
			AtLeast: bound(2)},
		{Scenario: "publish-batch", Measure: "rate", With: against("publish-batch", raw), Against: raw, AtLeast: bound(0.5)},
		{Scenario: "drain", Measure: "rate", With: against("drain", one), Against: one, AtLeast: bound(15)},
		{Scenario: "drain", Measure: "rate", With: against("drain", eight), Against: eight, AtLeast: bound(3)},
		{Scenario: "drain", Measure: "rate", With: against("drain", raw), Against: raw, AtLeast: bound(0.6)},
		{Scenario: "drain", Measure: "rate", Of: alone, With: against("drain", raw), Against: raw},
		{Scenario: "drain", Measure: "server"},
		{Scenario: "pickup", Measure: "p99", AtMost: bound(3)},
		{Scenario: "delay", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay", Measure: "p99", AtMost: bound(4)},
		{Scenario: "delay-loaded", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay-loaded", Measure: "p99", AtMost: bound(50)},
		{Scenario: "keys-10k", Measure: "rate", With: against("keys-none", ""), Against: without, AtLeast: bound(0.7)},
		{Scenario: "keys-100", Measure: "rate", With: against("keys-none", ""), Against: without},
		{Scenario: "keys-1", Measure: "rate", With: against("keys-none", ""), Against: without},
		{Scenario: "drain-at-100k", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
		{Scenario: "drain-at-1M", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
		{Scenario: "stored", Measure: "beyond"},
		{Scenario: "stored-keys", Measure: "beyond"},
		{Scenario: "leftover", Measure: "bytes", AtMost: bound(1000)},
		{Scenario: "idle", Measure: "commands", With: against("idle", eight), Against: eight},
	}
}
