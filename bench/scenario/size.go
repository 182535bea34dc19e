package scenario

import "time"

// Size says how much of everything a run does.
type Size struct {
	Name   string
	Rounds int
	// Run is how long rates are measured, after a quarter of it to warm up; Most bounds the backlog of a run.
	Run  time.Duration
	Most int
	// Backlog is what drains begin with, Drained how many messages of a larger backlog are timed.
	Backlog, Drained int
	// Fill is how long a system may take to fill a backlog; slow ones drain a smaller one.
	Fill time.Duration
	// Latency is how long the open loop runs.
	Latency time.Duration
	// Pickups are measured, or as many as there are in PickupTime.
	Pickups    int
	PickupTime time.Duration
	Delays     int
	// DelaySpan is the longest random delay.
	DelaySpan time.Duration
	// SlowTurns is how often each of the slow handlers runs.
	SlowTurns int
	Heap      int
	// Leftover is how many messages go through before what remains is looked at, and how many a restart finds.
	Leftover int
	Idle     time.Duration
	// PoisonKeys and PoisonRate shape the run with a poisoned key.
	PoisonKeys int
	PoisonRate float64
	// DelayedHeap is how many delayed messages are held at once.
	DelayedHeap int
}

// Full is what notes and documents quote: at most 30 minutes for a broker.
func Full() Size {
	return Size{Name: "full", Rounds: 5, Run: 1500 * time.Millisecond, Most: 2_000_000, Backlog: 300_000, Drained: 100_000,
		Fill:    4 * time.Second,
		Latency: 3 * time.Second, Pickups: 1500, PickupTime: 10 * time.Second, Delays: 5000, DelaySpan: 3 * time.Second,
		SlowTurns: 20, Heap: 200_000, Leftover: 1_000_000,
		Idle: 3 * time.Second, PoisonKeys: 100_000, PoisonRate: 20_000, DelayedHeap: 1_000_000}
}

// Quick shows within 3 minutes whether everything runs and about how fast.
func Quick() Size {
	return Size{Name: "quick", Rounds: 3, Run: 250 * time.Millisecond, Most: 500_000, Backlog: 60_000, Drained: 50_000,
		Fill:    700 * time.Millisecond,
		Latency: 400 * time.Millisecond, Pickups: 150, PickupTime: time.Second, Delays: 2000,
		DelaySpan: 400 * time.Millisecond, SlowTurns: 4, Heap: 50_000, Leftover: 50_000,
		Idle: 1200 * time.Millisecond, PoisonKeys: 100_000, PoisonRate: 20_000, DelayedHeap: 100_000}
}

// Tiny is for tests of the bench itself; its figures mean nothing.
func Tiny() Size {
	return Size{Name: "tiny", Rounds: 1, Run: 5 * time.Millisecond, Most: 4000, Backlog: 100, Drained: 50,
		Fill:    10 * time.Second,
		Latency: 20 * time.Millisecond, Pickups: 5, PickupTime: time.Second, Delays: 30, DelaySpan: 20 * time.Millisecond,
		SlowTurns: 1, Heap: 100, Leftover: 500,
		Idle: 10 * time.Millisecond, PoisonKeys: 100, PoisonRate: 2000, DelayedHeap: 1000}
}
