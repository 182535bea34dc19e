package report

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
)

func TestMedianAndSpread(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values         []float64
		median, spread float64
	}{
		{nil, 0, 0},
		{[]float64{5}, 5, 0},
		{[]float64{30, 10, 20}, 20, 1},
		{[]float64{4, 1, 3, 2}, 2.5, 1.2},
		{[]float64{-4, -2, -3}, -3, 2.0 / 3},
		{[]float64{0, 0, 0}, 0, 0},
	} {
		if got := Median(tt.values); got != tt.median {
			t.Errorf("median of %v is %v, want %v", tt.values, got, tt.median)
		}
		if got := Spread(tt.values); got != tt.spread {
			t.Errorf("spread of %v is %v, want %v", tt.values, got, tt.spread)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.5: "1.5", 12.345: "12.3", 999.4: "999",
		1234567: "1,234,567", -20345: "-20,345", 5: "5"} {
		if got := number(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

// named is a system with nothing but a name.
type named string

func (n named) Info() system.Info {
	return system.Info{Name: string(n), Version: "v1", Settings: "its settings", Why: "its reasons"}
}
func (named) Lacks(system.Feature) string                                  { return "" }
func (named) Open(context.Context, system.Options) (system.Session, error) { return nil, nil }

func bound(v float64) *float64 { return &v }

// example is a plan in which each kind of row occurs.
func example() plan.Plan {
	rate := scenario.Measure{Name: "rate", Unit: "msg/s"}
	p99 := scenario.Measure{Name: "p99", Unit: "ms", Lower: true}
	return plan.Plan{
		Broker: "test", Ours: named("ours"), Peers: []system.System{named("slow peer"), named("lossy peer")},
		Limit: named("limit"),
		Scenarios: []scenario.Scenario{
			{Name: "flow", Title: "the flow", Measures: []scenario.Measure{rate}},
			{Name: "wait", Title: "the wait", Measures: []scenario.Measure{p99}},
			{Name: "keyed", Title: "with keys", Measures: []scenario.Measure{rate}, OursOnly: true},
			{Name: "later", Title: "not measured", Measures: []scenario.Measure{rate}, FullOnly: true},
		},
		Checks: []plan.Check{
			{Scenario: "flow", Measure: "rate", AtLeast: bound(1000)},
			{Scenario: "flow", Measure: "rate", With: []plan.Point{{Scenario: "flow", System: "slow peer"},
				{Scenario: "flow", System: "lossy peer"}}, Against: "best peer", AtLeast: bound(5)},
			{Scenario: "wait", Measure: "p99", AtMost: bound(2)},
			{Scenario: "keyed", Measure: "rate", With: []plan.Point{{Scenario: "flow"}}, Against: "ours, without keys",
				AtLeast: bound(0.9)},
		},
	}
}

func round(n int, scenario, system, measure string, v float64) run.Round {
	r := run.Round{Job: run.Job{Scenario: scenario, System: system, Round: n}}
	r.Values, r.CPU = map[string]float64{measure: v}, 2
	return r
}

func exampleRounds() []run.Round {
	var all []run.Round
	for n, v := range []float64{900, 1100, 1000} {
		all = append(all, round(n+1, "flow", "ours", "rate", v), round(n+1, "flow", "slow peer", "rate", v/4),
			round(n+1, "flow", "limit", "rate", 4000),
			round(n+1, "wait", "ours", "p99", 4), round(n+1, "wait", "slow peer", "p99", 2),
			round(n+1, "keyed", "ours", "rate", 950))
		lossy := round(n+1, "flow", "lossy peer", "rate", 9999)
		lossy.Error = "of 10 messages 1 were lost, 0 repeated, 0 corrupt"
		all = append(all, lossy)
	}
	all[0].Noisy = true
	return all
}

func find(t *testing.T, rows []Row, scenario, against string, target bool) Row {
	t.Helper()
	for _, r := range rows {
		if r.Scenario == scenario && r.Against == against && (r.Met != nil) == target {
			return r
		}
	}
	t.Fatalf("no row of %q against %q with target %v in %+v", scenario, against, target, rows)
	return Row{}
}

func TestRows(t *testing.T) {
	t.Parallel()
	rows := Rows(example(), exampleRounds())
	if len(rows) != 8 { // flow: 3 systems and 2 checks; wait: 1 and 1; keyed: its check
		t.Errorf("%d rows, want 8: %+v", len(rows), rows)
	}
	for _, tt := range []struct {
		scenario, against string
		target            bool
		ours              float64
		ratio             float64 // 0: none
		met               bool
	}{
		{"flow", "slow peer", false, 1000, 4, false},
		{"flow", "limit", false, 1000, 0.25, false},
		{"flow", "lossy peer", false, 1000, 0, false},
		{"flow", "", true, 1000, 0, true},
		{"flow", "best peer", true, 1000, 4, false},
		{"wait", "slow peer", false, 4, 2, false},
		{"wait", "", true, 4, 0, false},
		{"keyed", "ours, without keys", true, 950, 0.95, true},
	} {
		r := find(t, rows, tt.scenario, tt.against, tt.target)
		if r.Ours == nil || *r.Ours != tt.ours {
			t.Errorf("%s against %q: ours %v, want %v", tt.scenario, tt.against, value(r.Ours), tt.ours)
		}
		if (r.Ratio == nil) != (tt.ratio == 0) || r.Ratio != nil && *r.Ratio != tt.ratio {
			t.Errorf("%s against %q: ratio %v, want %v", tt.scenario, tt.against, value(r.Ratio), tt.ratio)
		}
		if tt.target && *r.Met != tt.met {
			t.Errorf("%s against %q: met %v, want %v", tt.scenario, tt.against, *r.Met, tt.met)
		}
	}
}

func TestAPeerThatLosesIsReported(t *testing.T) {
	t.Parallel()
	r := find(t, Rows(example(), exampleRounds()), "flow", "lossy peer", false)
	if r.Theirs != nil || !strings.Contains(r.Note, "failed in 3 of 3 rounds") ||
		!strings.Contains(r.Note, "1 were lost") {
		t.Errorf("theirs %v, note %q: want no figure, and what was lost", value(r.Theirs), r.Note)
	}
}

func TestATargetIsMissedWhereWeFailed(t *testing.T) {
	t.Parallel()
	rounds := exampleRounds()
	for i := range rounds {
		if rounds[i].System == "ours" && rounds[i].Scenario == "flow" {
			rounds[i].Error = "it hung"
		}
	}
	r := find(t, Rows(example(), rounds), "flow", "", true)
	if r.Ours != nil || *r.Met || !strings.Contains(r.Note, "it hung") {
		t.Errorf("a failed run of ours reads as %+v", r)
	}
}

// TestAReportIsJudgedByTheTargetsOfNow: whoever raises a target must not be told by an old run that it is met.
func TestAReportIsJudgedByTheTargetsOfNow(t *testing.T) {
	t.Parallel()
	p := example()
	p.Checks[3].AtLeast = bound(0.96)
	if r := find(t, exampleReport().Judged(p).Rows, "keyed", "ours, without keys", true); *r.Met || r.Target != "≥ 0.96×" {
		t.Errorf("0.95 times is judged as %v by %q", *r.Met, r.Target)
	}
	without := exampleReport()
	without.Rounds = nil
	if got := without.Judged(p).Rows; len(got) != len(without.Rows) {
		t.Errorf("of a report without rounds %d rows are left of %d", len(got), len(without.Rows))
	}
}

func exampleReport() Report {
	p := example()
	return Report{Broker: "test", Size: "full", Command: "make bench BROKER=test",
		Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: "1m",
		Machine: meter.Machine{CPU: "a CPU", Cores: 2, Kernel: "6.1", Go: "go1.26"},
		Systems: []system.Info{p.Ours.Info(), p.Peers[0].Info()},
		Rows:    Rows(p, exampleRounds()),
		Skipped: []run.Skipped{{Scenario: "wait", System: "limit", Reason: "it never waits"}},
		Rounds:  exampleRounds()}
}

func TestTableSaysWhatWasMissed(t *testing.T) {
	t.Parallel()
	out := exampleReport().Table()
	for _, want := range []string{"ours", "slow peer", "4×", "≥ 5×", "MISSED  the flow", "≤ 2 ms", "FAILED  round 1",
		"2 targets missed", "1 of 21 measurements noisy"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
}

func TestDocsAreMadeFromTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := exampleReport()
	quick := full
	quick.Size, quick.Command = "quick", "make bench BROKER=test QUICK=1"
	for _, r := range []Report{full, quick} {
		if _, err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	reports, err := ReadAll(dir)
	if err != nil || len(reports) != 1 || reports[0].Size != "full" {
		t.Fatalf("read %d reports, %v; want the full one", len(reports), err)
	}
	page := Docs(reports)
	for _, want := range []string{"# Benchmarks", "## Method", "## The test broker", "`make bench BROKER=test`",
		"2026-01-02", "a CPU", "**missed**", "| met |",
		"its settings", "its reasons", "it never waits", "1 were lost", "How to add"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "too short to quote") {
		t.Error("a full run is called too short")
	}
	if page := Docs([]Report{quick}); !strings.Contains(page, "too short to quote") {
		t.Error("a quick run passes for a full one")
	}
	if page := Docs(nil); !strings.Contains(page, "No broker has been measured") {
		t.Error("without results the page does not say so")
	}
}

func TestTheFileHasTheFieldsOthersRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := exampleReport().Write(dir)
	if err != nil || path != filepath.Join(dir, "test.json") {
		t.Fatalf("wrote %s, %v", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var raw struct {
		Rows   []map[string]any
		Rounds []map[string]any
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"scenario", "measure", "ours", "against", "theirs", "ratio", "target", "met"} {
		if _, ok := raw.Rows[0][field]; !ok {
			t.Errorf("rows lack %q", field)
		}
	}
	if len(raw.Rounds) != len(exampleRounds()) {
		t.Errorf("%d rounds were kept of %d", len(raw.Rounds), len(exampleRounds()))
	}
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAll(dir); err == nil || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("a broken file: got %v", err)
	}
}
