package growth

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/committed"
	"github.com/ferrymq/ferry/bench/meter"
)

// Dir is where the results are, among all others: any number of files, of a broker each or of several.
const Dir = "growth"

// Most is by how much a unit may cost more at a larger size.
const Most = 1.2

// Brokers are all that can grow. A gateway grows as the broker behind it does.
func Brokers() []string { return []string{"memory", "disk", "redis", "redisstream", "kafka"} }

// Report is a file of results.
type Report struct {
	Commit  string        `json:"commit"`
	Began   time.Time     `json:"began"`
	Machine meter.Machine `json:"machine"`
	// Load is what else the machine did when the run began.
	Load string `json:"load"`
	Rows []Row  `json:"rows"`
}

// Write writes the file.
func (r Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads all results in a directory, the oldest first. One that is not there has none.
func Read(dir string) ([]Report, error) {
	all, err := committed.Read(dir, "*.json", committed.JSON[Report])
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Report) int { return a.Began.Compare(b.Began) })
	return all, nil
}

// Head begins a table.
func Head(w io.Writer) {
	_, _ = fmt.Fprintln(w, "| broker | what grows | from | to | ratio | wanted | idle |\n|---|---|--:|--:|--:|---|---|")
}

// Lines writes a line for each size of a shape that is compared with the first.
func Lines(w io.Writer, s Shape, rows []Row) {
	if len(rows[0].Rounds) == 0 {
		_, _ = fmt.Fprintf(w, "| %s | %s | – | – | – | – | not reached: %s |\n", rows[0].Broker, s.Title, rows[0].Unreached)
		return
	}
	first := rows[0].Median()
	for _, r := range rows[1:] {
		if len(r.Rounds) == 0 {
			_, _ = fmt.Fprintf(w, "| %s | %s | %s: %.2f µs/%s | %s: – | – | – | not reached: %s |\n", r.Broker, s.Title,
				Count(rows[0].Size), first.PerUnit(), s.Unit, Count(r.Size), r.Unreached)
			continue
		}
		c := r.Median()
		ratio, verdict := c.PerUnit()/first.PerUnit(), "met"
		if ratio > Most {
			verdict = "**missed**"
		}
		idle := ""
		if s.Idle != "" {
			idle = fmt.Sprintf("%.0f B of an idle %s", c.IdleBytes, s.Idle)
		}
		_, _ = fmt.Fprintf(w, "| %s | %s | %s: %.2f µs/%s | %s: %.2f µs/%s | %.2f× | ≤ %.1f×: %s | %s |\n", r.Broker, s.Title,
			Count(rows[0].Size), first.PerUnit(), s.Unit, Count(r.Size), c.PerUnit(), s.Unit, ratio, Most, verdict, idle)
	}
}

// newest returns the rows of a shape on a broker, of the last run that measured it.
func newest(all []Report, broker, shape string) []Row {
	for _, r := range slices.Backward(all) {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(x Row) bool { return x.Broker != broker || x.Shape != shape })
		if len(rows) > 0 {
			return rows
		}
	}
	return nil
}

// runs says of which runs results are.
func runs(all []Report) string {
	var of []string
	for _, r := range all {
		of = append(of, fmt.Sprintf("%s on %s (load %s)", r.Commit, r.Began.Format(time.DateOnly), strings.TrimSpace(r.Load)))
	}
	return strings.Join(of, ", ")
}

// Section is the text of the page of figures about the results: every size.
func Section(all []Report) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Growth\n\nProcessor time of a message, that of servers included, while a broker grows: `go run "+
		"./cmd/growth` in `bench`. Medians of the rounds in `bench/results/%s`, of %s.\n\n", Dir, runs(all))
	Head(&b)
	for _, s := range Shapes() {
		for _, broker := range Brokers() {
			if rows := newest(all, broker, s.Name); rows != nil {
				Lines(&b, s, rows)
			}
		}
	}
	return b.String()
}

// Summary is the table of docs/performance.md: a line for each shape, with a column for each broker.
func Summary(all []Report) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of the rounds of %s ([all sizes](benchmarks.md#growth)).\n\n| what grows | %s |\n|---|%s\n",
		runs(all), strings.Join(Brokers(), " | "), strings.Repeat("---|", len(Brokers())))
	for _, s := range Shapes() {
		var sizes []string
		for _, n := range s.Sizes {
			sizes = append(sizes, Count(n))
		}
		line(&b, fmt.Sprintf("%s: %s, for each %s", s.Title, strings.Join(sizes, ", "), s.Unit),
			func(broker string) string { return ratios(newest(all, broker, s.Name)) })
	}
	for _, s := range Shapes() {
		if s.Idle != "" {
			line(&b, "an idle "+s.Idle, func(broker string) string { return idle(newest(all, broker, s.Name)) })
		}
	}
	return b.String()
}

func line(b *strings.Builder, what string, cell func(broker string) string) {
	b.WriteString("| " + what)
	for _, broker := range Brokers() {
		b.WriteString(" | " + cell(broker))
	}
	b.WriteString(" |\n")
}

// ratios are what a unit costs at the first size, and how many times as much at the others.
func ratios(rows []Row) string {
	if len(rows) == 0 || len(rows[0].Rounds) == 0 {
		return "–"
	}
	first := rows[0].Median().PerUnit()
	var all []string
	for _, r := range rows[1:] {
		text := "–"
		if len(r.Rounds) > 0 {
			ratio := r.Median().PerUnit() / first
			if text = fmt.Sprintf("%.1f", ratio); ratio > Most {
				text = fmt.Sprintf("**%.2g**", ratio)
			}
		}
		all = append(all, text)
	}
	return fmt.Sprintf("%s µs; %s", short(first), strings.Join(all, ", "))
}

// idle is what one idle thing takes where there are most of them.
func idle(rows []Row) string {
	for _, r := range slices.Backward(rows) {
		if len(r.Rounds) == 0 {
			continue
		}
		switch bytes := r.Median().IdleBytes; {
		case bytes < 1:
			return "nothing"
		case bytes < 1000:
			return short(bytes) + " B"
		default:
			return short(bytes/1000) + " KB"
		}
	}
	return "–"
}

// short writes v with two digits at least.
func short(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
