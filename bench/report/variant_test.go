package report

import (
	"testing"

	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
)

// TestACheckOfAVariantHasItsFigure: the row must show the variant's figure, and say whose it is.
func TestACheckOfAVariantHasItsFigure(t *testing.T) {
	t.Parallel()
	p := example()
	p.Variants = []plan.Variant{{System: named("bare"), Scenarios: []string{"flow"}}}
	p.Checks = []plan.Check{
		{Scenario: "flow", Measure: "rate", Of: "bare", With: []plan.Point{{Scenario: "flow", System: "limit"}},
			Against: "limit", AtLeast: bound(0.6)},
		{Scenario: "flow", Measure: "rate", With: []plan.Point{{Scenario: "flow", System: "slow peer"}}, Against: "slow peer",
			AtLeast: bound(5)},
	}
	var rounds []run.Round
	for system, rate := range map[string]float64{"ours": 100, "bare": 300, "limit": 400, "slow peer": 10} {
		rounds = append(rounds, run.Round{Job: run.Job{Scenario: "flow", System: system}, CPU: 2, ServerCPU: 3,
			Result: scenario.Result{Values: map[string]float64{"rate": rate}}})
	}
	against := map[string]int{}
	for _, r := range Rows(p, rounds) {
		against[r.Of+"|"+r.Against]++
		if r.Of == "bare" && (*r.Ours != 300 || *r.Ratio != 0.75 || !*r.Met || r.Title != "the flow (bare)" ||
			r.who() != "flow (bare)") {
			t.Errorf("the row of the variant is %+v", r)
		}
		if r.OursCPU.String() != "2+3" {
			t.Errorf("processor time is %q", r.OursCPU)
		}
	}
	// a check replaces the plain comparison
	for who, want := range map[string]int{"bare|limit": 1, "|limit": 1, "|slow peer": 1, "|bare": 1} {
		if against[who] != want {
			t.Errorf("%d rows of %s, want %d", against[who], who, want)
		}
	}
}

// TestACheckOfTheDifference: what counts is by how much ours is more than theirs, whatever the ratio.
func TestACheckOfTheDifference(t *testing.T) {
	t.Parallel()
	p := example()
	for ours, want := range map[float64]bool{4: true, 12: true, 12.5: false} {
		p.Checks = []plan.Check{{Scenario: "wait", Measure: "p99",
			With: []plan.Point{{Scenario: "wait", System: "slow peer"}}, Against: "slow peer", Over: true, AtMost: bound(10)}}
		rows := Rows(p, []run.Round{round(1, "wait", "ours", "p99", ours), round(1, "wait", "slow peer", "p99", 2)})
		if r := rows[len(rows)-1]; r.Met == nil || *r.Met != want || r.Target != "≤ 10 ms more" {
			t.Errorf("%v ms, 2 ms without: %+v", ours, r)
		}
		rows = Rows(p, []run.Round{round(1, "wait", "ours", "p99", ours)})
		if r := rows[len(rows)-1]; r.Met == nil || *r.Met {
			t.Errorf("met without anything to compare with: %+v", r)
		}
	}
}
