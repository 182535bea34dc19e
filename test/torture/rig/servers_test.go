package rig

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/checker"
)

// inRealTime runs real processes, with bounds that a busy machine keeps. Where that gets too little done to prove
// anything it goes on for longer.
func inRealTime(t *testing.T, o Options) *checker.Report {
	t.Helper()
	r := runOnce(t, o)
	for r.OK && r.Published < 100 && o.Load < time.Minute {
		o.Load *= 2
		r = runOnce(t, o)
	}
	if r.Published < 100 || r.Delivered < 2*r.Published*8/10 {
		t.Errorf("only %d published and %d delivered: that proves little", r.Published, r.Delivered)
	}
	return r
}

func runOnce(t *testing.T, o Options) *checker.Report {
	t.Helper()
	o.Dir, o.Bin = keptOnFailure(t), built(t)
	o.Fault.Name = cmp.Or(o.Fault.Name, "smoke")
	o.Seed, o.Rate, o.RedeliverIn, o.RecoverIn, o.Drain = 1, 200, 20*time.Second, 20*time.Second, 2*time.Minute
	o.Lease = cmp.Or(o.Lease, 4*time.Second)
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r.Verdict())
	if !r.OK {
		t.Error("a promise was broken")
	}
	return r
}

// smokes are short runs against a real server: one with everything that may go wrong, and those that planted bugs are
// caught by.
func smokes(t *testing.T, broker string) {
	t.Helper()
	for _, name := range []string{"none", "slow-handler", "clock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(Faults(), func(f Fault) bool { return f.Name == name })
			inRealTime(t, Options{Broker: broker, Load: 3 * time.Second, Fault: Faults()[i]})
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		r := inRealTime(t, Options{Broker: broker, Load: 3 * time.Second, Fault: Fault{
			NoDuplicates: true, Schedule: "at 500ms busy server 1 for 700ms; at 1800ms misconf server 1 for 700ms",
		}})
		if r.Faults != 2 {
			t.Errorf("%d faults, want 2", r.Faults)
		}
	})
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		r := inRealTime(t, Options{Broker: broker, Load: 4 * time.Second, Fault: Fault{
			Setup:    setupAlways,
			Schedule: "at 1s kill consumer 1; at 2s crash server 1 for 300ms; at 3s cut producer 1 for 200ms",
		}})
		if r.Crashes != 1 || r.Faults != 2 {
			t.Errorf("%d crashes and %d other faults", r.Crashes, r.Faults)
		}
	})
}

// A consumer and the server are killed under load. `make torture BROKER=redis` does it longer, and much else.
func TestRedisSmoke(t *testing.T) {
	t.Parallel()
	smokes(t, "redis")
}

// The same on Redis Streams.
func TestRedisStreamSmoke(t *testing.T) {
	t.Parallel()
	smokes(t, "redisstream")
}

// The process that owns the store is killed again and again. `make torture BROKER=disk` does it longer.
func TestDiskSmoke(t *testing.T) {
	t.Parallel()
	r := inRealTime(t, Options{Broker: "disk", Load: 5 * time.Second,
		Fault: Fault{Schedule: "every 400ms-800ms from 500ms kill app 1"}})
	if r.Crashes < 5 {
		t.Errorf("killed %d times only", r.Crashes)
	}
}

// Whatever stands still longer than a lease is tortured on every broker: processes, handlers, and servers where there
// are some.
func TestEveryBrokerStandsStill(t *testing.T) {
	t.Parallel()
	for _, name := range Brokers() {
		fit, _, err := FaultsFor(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, oneOf := range map[string][]string{
			"a frozen process":           {"stop-consumer", "stop-app"},
			"a handler beyond its lease": {"slow-handler"},
			"a frozen server":            {"freeze-server", "freeze-primary", "freeze-broker"},
		} {
			if what == "a frozen server" && (name == "memory" || name == "disk") {
				continue // it has none
			}
			if !slices.ContainsFunc(fit, func(f Fault) bool { return slices.Contains(oneOf, f.Name) }) {
				t.Errorf("%s is not tortured with %s", name, what)
			}
		}
	}
}

// Every fault names only what some broker can do, and every broker can do most.
func TestEveryFaultIsForSomebody(t *testing.T) {
	t.Parallel()
	possible := map[string]bool{}
	for _, name := range Brokers() {
		fit, misfits, err := FaultsFor(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fit {
			possible[f.Name] = true
		}
		if len(fit)+len(misfits) != len(Faults()) {
			t.Errorf("%s: %d faults and %d not for it, of %d", name, len(fit), len(misfits), len(Faults()))
		}
		if len(fit) < 10 && name != "disk" {
			t.Errorf("%s has only %d faults", name, len(fit))
		}
	}
	for _, f := range Faults() {
		if f.Setup != setupSmallDisk && !possible[f.Name] { // which needs root
			t.Errorf("no broker can suffer %s", f.Name)
		}
	}
}
