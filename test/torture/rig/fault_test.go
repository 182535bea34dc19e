package rig

import (
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/schedule"
)

// Twenty fail-overs come one after the other in one run, on the same servers.
func TestTwentyFailOversAreOneRun(t *testing.T) {
	t.Parallel()
	all := Faults()
	f := all[slices.IndexFunc(all, func(f Fault) bool { return f.Name == "failover-often" })]
	clauses, err := f.clauses(time.Second, failoverActions())
	if err != nil {
		t.Fatal(err)
	}
	steps, err := schedule.Plan(clauses, f.Longest(), 1, nil)
	if err != nil || len(steps) != 20 {
		t.Errorf("%d fail-overs in one run, %v; want 20", len(steps), err)
	}
}
