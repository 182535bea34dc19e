package report

import (
	_ "embed"
	"fmt"
	"strings"
)

// The text around the figures. What it says about method must hold for every broker.
var (
	//go:embed method.md
	method string
	//go:embed extend.md
	extend string
)

// Docs is the page of documentation made from the reports, with what else there is to tell behind them.
func Docs(reports []Report, sections ...string) string {
	var b strings.Builder
	b.WriteString(method)
	for _, r := range reports {
		r.section(&b)
	}
	if len(reports) == 0 {
		b.WriteString("\nNo broker has been measured yet.\n")
	}
	for _, text := range sections {
		b.WriteString(text)
	}
	b.WriteString("\n" + extend)
	return b.String()
}

func (r Report) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n## The %s broker\n\n", r.Broker)
	all, noisy := r.measurements()
	if r.Size == "full" {
		b.WriteString("**From a full run.**")
	} else {
		fmt.Fprintf(b, "**From a %s run: good enough to see that everything works, too short to quote.**", r.Size)
	}
	if noisy > all/2 {
		b.WriteString(" **The machine was loaded by others: not to be quoted at all.**")
	}
	b.WriteString("\n\n")
	fmt.Fprintf(b, "`%s` at commit %s, %s, took %s, on %s, %d cores, %g GB, Linux %s, %s. %d of %d measurements were "+
		"noisy.\n\n", r.Command, dash(r.Commit), r.Date.Format("2006-01-02"),
		r.Took, r.Machine.CPU, r.Machine.Cores, r.Machine.MemoryGB, r.Machine.Kernel, r.Machine.Go, noisy, all)
	if r.Kept != nil {
		b.WriteString("The measurements themselves were not kept: the file has what this page said of them.\n\n")
	}
	r.targets(b)
	r.comparisons(b)
	r.systems(b)
	r.problems(b)
}

func (r Report) targets(b *strings.Builder) {
	b.WriteString("### Targets\n\n| what | measure | ours | against | ratio | target | |\n|---|---|--:|---|--:|---|---|\n")
	for _, x := range r.Rows {
		if x.Met == nil {
			continue
		}
		mark := "met"
		if !*x.Met {
			mark = "**missed**"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", x.Title, x.measure(), value(x.Ours), dash(x.Against),
			ratio(x.Ratio), x.Target, mark)
	}
}

func (r Report) comparisons(b *strings.Builder) {
	b.WriteString("\n### Figures\n\nEach figure is the median of the rounds; ± is the distance from the least to the " +
		"greatest. CPU is µs of processor time for one message, ours / theirs; where there is a server: of the process + " +
		"of the server.\n\n" +
		"| what | measure | ours | ± | against | theirs | ± | ratio | CPU |\n|---|---|--:|--:|---|--:|--:|--:|--:|\n")
	for _, x := range r.Rows {
		if x.Met != nil && x.Theirs == nil && r.listed(x) {
			continue // the figure stands in another row
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", x.Title, x.measure(), value(x.Ours),
			percent(x.Ours, x.OursSpread),
			dash(x.Against), value(x.Theirs), percent(x.Theirs, x.TheirsSpread), ratio(x.Ratio), cpus(x))
	}
}

// listed reports whether the figure of x also stands in a row without a target.
func (r Report) listed(x Row) bool {
	for _, y := range r.Rows {
		if y.Scenario == x.Scenario && y.Measure == x.Measure && y.Met == nil {
			return true
		}
	}
	return false
}

func (r Report) systems(b *strings.Builder) {
	b.WriteString("\n### Settings\n\n| system | version | settings | why these |\n|---|---|---|---|\n")
	for _, s := range r.Systems {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", s.Name, s.Version, s.Settings, s.Why)
	}
	if len(r.Skipped) == 0 {
		return
	}
	b.WriteString("\nNot measured, and why:\n\n")
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "- %s, %s: %s\n", s.Scenario, s.System, s.Reason)
	}
}

func (r Report) problems(b *strings.Builder) {
	first := true
	for _, m := range r.Rounds {
		if m.Error == "" {
			continue
		}
		if first {
			b.WriteString("\nMeasurements that failed, and stand in no median:\n\n")
			first = false
		}
		fmt.Fprintf(b, "- round %d, %s\n", m.Round, oneLine(m.Error))
	}
}
