package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table returns the rows for a terminal, and what is to be said about them.
func (r Report) Table() string {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = io.WriteString(tw, strings.Join(cells, "\t")+"\n") } // into memory: cannot fail
	row("scenario", "measure", "ours", "±", "against", "theirs", "±", "ratio", "CPU µs/msg", "target", "")
	for _, x := range r.Rows {
		row(x.who(), x.measure(), value(x.Ours), percent(x.Ours, x.OursSpread), dash(x.Against), value(x.Theirs),
			percent(x.Theirs, x.TheirsSpread),
			ratio(x.Ratio), cpus(x), dash(x.Target), verdict(x.Met))
	}
	_ = tw.Flush()
	return b.String() + "\n" + r.summary() + "\n"
}

// summary says in a few lines what failed, what was missed and how noisy it was.
func (r Report) summary() string {
	var b strings.Builder
	for _, m := range r.Rounds {
		if m.Error != "" {
			fmt.Fprintf(&b, "FAILED  round %d: %s\n", m.Round, oneLine(m.Error))
		}
	}
	for _, x := range r.Missed() {
		fmt.Fprintf(&b, "MISSED  %s, %s: %s%s (target %s)\n", x.Title, x.measure(), value(x.Ours), against(x), x.Target)
	}
	fmt.Fprintf(&b, "%d rows, %d targets missed, %d of %d measurements noisy, took %s", len(r.Rows), len(r.Missed()),
		r.noisy(), len(r.Rounds), r.Took)
	return b.String()
}

func (r Report) noisy() int {
	n := 0
	for _, m := range r.Rounds {
		if m.Noisy {
			n++
		}
	}
	return n
}

func against(x Row) string {
	if x.Ratio == nil {
		return ""
	}
	return fmt.Sprintf(", %s of %s (%s)", ratio(x.Ratio), value(x.Theirs), x.Against)
}

// who is the scenario, with the variant whose figure it is.
func (r Row) who() string {
	if r.Of == "" {
		return r.Scenario
	}
	return r.Scenario + " (" + r.Of + ")"
}

func (r Row) measure() string {
	arrow := "↑"
	if r.Lower {
		arrow = "↓"
	}
	return fmt.Sprintf("%s %s %s", r.Measure, r.Unit, arrow)
}

func verdict(met *bool) string {
	switch {
	case met == nil:
		return ""
	case *met:
		return "met"
	}
	return "MISSED"
}

func cpus(x Row) string {
	switch {
	case x.OursCPU == CPU{}:
		return "–"
	case x.TheirsCPU == CPU{}:
		return x.OursCPU.String()
	}
	return x.OursCPU.String() + " / " + x.TheirsCPU.String()
}

// String is the time of the process, and that of the servers where there are some: 3.1+4.5.
func (c CPU) String() string {
	if c.Server == 0 {
		return number(c.Process)
	}
	return number(c.Process) + "+" + number(c.Server)
}

func ratio(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v) + "×"
}

func value(v *float64) string {
	if v == nil {
		return "–"
	}
	return number(*v)
}

func percent(v *float64, spread float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*spread)
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// number writes v with three significant digits at least, and thousands apart.
func number(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	if digits > 0 {
		s := strconv.FormatFloat(v, 'f', min(digits, 6), 64)
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	if v < 0 {
		s = "-" + s
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
