package plan

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/natsjs"
	"github.com/ferrymq/ferry/bench/system/ours"
	"github.com/ferrymq/ferry/bench/system/rawpebble"
	"github.com/ferrymq/ferry/bench/system/river"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
)

// diskInterval is what the variant that does not wait for the disk runs with; its peer syncs every two minutes.
const diskInterval = time.Second

// Disk is the bench of the disk broker.
func Disk() Plan {
	ferry := ours.System{
		Driver: "disk", Start: startDisk(disk.Always),
		Settings: "disk.New(ctx, disk.Options{Dir}): Sync Always, ferry.Options{}, worker.Options{}: all defaults, raw " +
			"handlers",
	}
	interval := ferry
	interval.Driver, interval.Start = "disk, interval", startDisk(disk.Interval(diskInterval))
	interval.Settings = "disk.New(ctx, disk.Options{Dir, Sync: Interval(1 s)}), ferry.Options{}, worker.Options{}: all " +
		"else default, raw handlers"
	nats := natsjs.System{Storage: jetstream.FileStorage}
	synced := natsjs.System{Storage: jetstream.FileStorage, SyncAlways: true}
	return Plan{
		Broker: "disk", Ours: ferry,
		Variants: []Variant{{System: interval, Scenarios: []string{"publish-1", "publish-64", "publish-256", "publish-batch",
			"publish-async", "drain", "through-single-1KB"}}},
		Peers: []system.System{nats, synced, river.System{}}, Limit: rawpebble.System{},
		Scenarios: slices.Concat(diskScenarios(), scenario.Named()),
		Checks:    also(diskChecks(interval.Info().Name, nats.Info().Name, synced.Info().Name), serviceTargets()),
	}
}

func startDisk(sync disk.Sync) func(context.Context) (ours.Backend, error) {
	return func(context.Context) (ours.Backend, error) {
		dir, err := os.MkdirTemp("", "bench-disk-")
		if err != nil {
			return ours.Backend{}, err
		}
		return ours.Backend{
			Open: func(ctx context.Context) (driver.Driver, error) {
				return disk.New(ctx, disk.Options{Dir: dir, Sync: sync})
			},
			Usage: func() (system.Usage, error) {
				bytes, err := system.DirSize(dir)
				return system.Usage{Bytes: bytes}, err
			},
			Stop: func() error { return os.RemoveAll(dir) },
		}, nil
	}
}

func diskScenarios() []scenario.Scenario {
	singles := scenario.ThroughSingles(1024)
	return []scenario.Scenario{
		scenario.Publish(1), scenario.Publish(64), scenario.Publish(256), scenario.PublishBatches().InFull(),
		scenario.PublishAsync(),
		scenario.Drain(), singles, scenario.Latency(singles).InFull(), scenario.Pickup().InFull(), scenario.PickupAcked(),
		scenario.Delay(),
		scenario.Keyed(0), scenario.Keyed(10_000), scenario.Keyed(1),
		scenario.DrainAt(0), scenario.DrainAt(100_000), scenario.DrainAt(1_000_000).InFull(),
		scenario.Slow().InFull(), scenario.Stored(false), scenario.Leftover(), scenario.Restart().InFull(),
		scenario.Idle().InFull(),
	}
}

func diskChecks(interval, nats, synced string) []Check {
	const raw, sqlite, without, empty = "raw Pebble", "River (SQLite)", "ferry disk without keys",
		"ferry disk, nothing behind"
	against := func(scenario, system string) []Point { return []Point{{Scenario: scenario, System: system}} }
	checks := []Check{
		{Scenario: "publish-1", Measure: "rate", With: against("publish-1", synced), Against: synced, AtLeast: bound(0.9)},
		{Scenario: "publish-64", Measure: "rate", With: against("publish-64", synced), Against: synced, AtLeast: bound(5)},
		{Scenario: "publish-256", Measure: "rate", With: against("publish-256", synced), Against: synced, AtLeast: bound(5)},
		{Scenario: "publish-async", Measure: "rate", Of: interval, With: against("publish-async", nats), Against: nats,
			AtLeast: bound(1)},
		{Scenario: "publish-64", Measure: "rate", With: against("publish-64", sqlite), Against: sqlite, AtLeast: bound(20)},
		{Scenario: "drain", Measure: "rate", With: against("drain", nats), Against: nats, AtLeast: bound(1.2)},
		{Scenario: "drain", Measure: "rate", With: against("drain", raw), Against: raw, AtLeast: bound(0.6)},
		{Scenario: "drain", Measure: "rate", With: against("drain", sqlite), Against: sqlite, AtLeast: bound(20)},
		{Scenario: "drain", Measure: "rate", Of: interval, With: against("drain", nats), Against: nats, AtLeast: bound(1.2)},
		{Scenario: "pickup-acked", Measure: "p99", AtMost: bound(0.5)},
		{Scenario: "delay", Measure: "early", AtMost: bound(0)},
		{Scenario: "delay", Measure: "p99", AtMost: bound(5)},
		{Scenario: "keys-10k", Measure: "rate", With: against("keys-none", ""), Against: without},
		{Scenario: "keys-1", Measure: "rate", With: against("keys-none", ""), Against: without},
		{Scenario: "drain-at-100k", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.9)},
		{Scenario: "drain-at-1M", Measure: "rate", With: against("drain-at-0", ""), Against: empty, AtLeast: bound(0.95)},
		{Scenario: "restart", Measure: "open", AtMost: bound(5)},
	}
	for s, least := range map[string]float64{"publish-1": 0.7, "publish-64": 0.7, "publish-256": 0.85,
		"through-single-1KB": 0.95} {
		checks = append(checks, Check{Scenario: s, Measure: "rate", With: against(s, raw), Against: raw,
			AtLeast: bound(least)})
	}
	return checks
}
