package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
)

// Rows compares ours with everybody else, scenario by scenario, each followed by its checks.
func Rows(p plan.Plan, rounds []run.Round) []Row {
	t := table{plan: p, ours: p.Ours.Info().Name, rounds: rounds}
	var rows []Row
	for _, s := range p.Scenarios {
		if !t.measured(s.Name) {
			continue
		}
		for _, m := range s.Measures {
			rows = append(rows, t.measure(s, m)...)
		}
	}
	return rows
}

// measure makes the rows of one figure: against every other system, and its checks. Where there is neither, it stands
// alone.
func (t table) measure(s scenario.Scenario, m scenario.Measure) []Row {
	var rows []Row
	if !m.Beside {
		rows = t.compare(s, m)
	}
	for _, c := range t.plan.Checks {
		if c.Scenario == s.Name && c.Measure == m.Name {
			rows = append(rows, t.check(s, m, c))
		}
	}
	if len(rows) == 0 && !m.Beside {
		r := t.row(s, m)
		rows = append(rows, r)
	}
	return rows
}

// table looks figures up.
type table struct {
	plan   plan.Plan
	ours   string
	rounds []run.Round
}

func (t table) measured(scenario string) bool {
	for _, r := range t.rounds {
		if r.Scenario == scenario {
			return true
		}
	}
	return false
}

// figure is what one system reached in one scenario.
type figure struct {
	median, spread float64
	cpu            CPU
	rounds, failed int
	why            string
}

func (f figure) ok() bool { return f.rounds > f.failed }

func (f figure) note(who string) string {
	if f.failed == 0 {
		return ""
	}
	return fmt.Sprintf("%s failed in %d of %d rounds: %s", who, f.failed, f.rounds, f.why)
}

func (t table) figure(scenario, system, measure string) figure {
	var f figure
	var values, process, server []float64
	for _, r := range t.rounds {
		if r.Scenario != scenario || r.System != system {
			continue
		}
		f.rounds++
		if r.Error != "" {
			f.failed++
			f.why = r.Error
			continue
		}
		values = append(values, r.Values[measure])
		process, server = append(process, r.CPU), append(server, r.ServerCPU)
	}
	f.median, f.spread, f.cpu = Median(values), Spread(values), CPU{Process: Median(process), Server: Median(server)}
	return f
}

// row begins a row with our figure.
func (t table) row(s scenario.Scenario, m scenario.Measure) Row { return t.rowOf(s, m, "") }

// rowOf begins a row with the figure of a variant, or with ours.
func (t table) rowOf(s scenario.Scenario, m scenario.Measure, variant string) Row {
	r := Row{Scenario: s.Name, Of: variant, Title: s.Title, Measure: m.Name, Unit: m.Unit, Lower: m.Lower}
	name := t.ours
	if variant != "" {
		name = variant
		r.Title = fmt.Sprintf("%s (%s)", s.Title, variant)
	}
	f := t.figure(s.Name, name, m.Name)
	r.Note = f.note(name)
	if f.ok() {
		r.Ours, r.OursSpread = &f.median, f.spread
		if m.Name == "rate" {
			r.OursCPU = f.cpu
		}
	}
	return r
}

// compare makes a row for every other system that was measured, but those that a check compares with in the same way.
func (t table) compare(s scenario.Scenario, m scenario.Measure) []Row {
	var rows []Row
	for _, sys := range t.plan.Systems()[1:] {
		name := sys.Info().Name
		theirs := t.figure(s.Name, name, m.Name)
		if theirs.rounds == 0 || t.checked(s.Name, m.Name, name) {
			continue
		}
		r := t.row(s, m)
		r.Against = name
		r.put(theirs, m)
		r.addNote(theirs.note(name))
		rows = append(rows, r)
	}
	return rows
}

// checked reports whether a check compares our figure with that of this system in the same scenario.
func (t table) checked(scenario, measure, system string) bool {
	return slices.ContainsFunc(t.plan.Checks, func(c plan.Check) bool {
		return c.Scenario == scenario && c.Measure == measure && c.Of == "" &&
			slices.Equal(c.With, []plan.Point{{Scenario: scenario, System: system}})
	})
}

// put adds their figure and the ratio.
func (r *Row) put(theirs figure, m scenario.Measure) {
	if !theirs.ok() {
		return
	}
	r.Theirs, r.TheirsSpread = &theirs.median, theirs.spread
	if m.Name == "rate" {
		r.TheirsCPU = theirs.cpu
	}
	if r.Ours != nil && theirs.median != 0 {
		ratio := *r.Ours / theirs.median
		r.Ratio = &ratio
	}
}

func (r *Row) addNote(note string) { r.Note = strings.Trim(r.Note+"; "+note, "; ") }

// check makes the row of a target or of a comparison across scenarios.
func (t table) check(s scenario.Scenario, m scenario.Measure, c plan.Check) Row {
	r := t.rowOf(s, m, c.Of)
	r.Against, r.Target = c.Against, target(c, m)
	value := r.Ours
	if len(c.With) > 0 {
		theirs := t.best(c.With, m)
		r.put(theirs, m)
		value = r.Ratio
		if c.Over && r.Ours != nil && theirs.ok() {
			over := *r.Ours - theirs.median
			value = &over
		}
	}
	if r.Target != "" {
		met := value != nil && (c.AtLeast == nil || *value >= *c.AtLeast) && (c.AtMost == nil || *value <= *c.AtMost)
		r.Met = &met
	}
	return r
}

// best is the best figure of several points.
func (t table) best(points []plan.Point, m scenario.Measure) figure {
	var best figure
	for _, p := range points {
		if p.System == "" {
			p.System = t.ours
		}
		f := t.figure(p.Scenario, p.System, m.Name)
		if f.ok() && (!best.ok() || (f.median > best.median) != m.Lower) {
			best = f
		}
	}
	return best
}

// target says in words what a check asks for.
func target(c plan.Check, m scenario.Measure) string {
	unit := " " + m.Unit
	switch {
	case c.Over:
		unit += " more"
	case len(c.With) > 0:
		unit = "×"
	}
	var parts []string
	if c.AtLeast != nil {
		parts = append(parts, "≥ "+number(*c.AtLeast)+unit)
	}
	if c.AtMost != nil {
		parts = append(parts, "≤ "+number(*c.AtMost)+unit)
	}
	return strings.Join(parts, ", ")
}
