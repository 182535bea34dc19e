package periodic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
)

// File is where the results are, among all others.
const File = "periodic/results.json"

// Report is the file of results: one for each system, of the last run that measured it.
type Report struct {
	Rows []Row `json:"rows"`
}

// Row is a result with the circumstances of its run.
type Row struct {
	Result
	Date    time.Time     `json:"date"`
	Commit  string        `json:"commit"`
	Machine meter.Machine `json:"machine"`
	// Load is the average load of the machine when the run began, of all its processes, for each core.
	Load float64 `json:"load"`
}

// Read reads a file of results. One that is not there has none.
func Read(path string) (Report, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, nil
	}
	var r Report
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// Put replaces the row of a system.
func (r *Report) Put(row Row) {
	if i := slices.IndexFunc(r.Rows, func(o Row) bool { return o.System == row.System }); i >= 0 {
		r.Rows[i] = row
		return
	}
	r.Rows = append(r.Rows, row)
	order := map[string]int{}
	for i, s := range Systems() {
		order[s.Name] = i
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int { return order[a.System] - order[b.System] })
}

// Write writes the file.
func (r *Report) Write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// targets are the p99 of lateness, in milliseconds, on a quiet machine.
var targets = map[string]float64{"ferry memory": 10, "ferry disk": 10, "ferry redis": 25}

// Section is the text of the page about the results.
func (r *Report) Section() string {
	if len(r.Rows) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n## Periodic jobs\n\n%d schedules tick at every full second, in one process with their handlers: "+
		"`go run ./cmd/periodic` in `bench`. Late is when a handler starts after its tick. Then the process is killed "+
		"(SIGKILL) every %v "+
		"for %v and started again at once: a tick is missed when no handler has started %v after the last kill, doubled "+
		"when several messages were made of it, and repeated when the handler of one message starts again.\n\n",
		Schedules, Default.Every, Default.Killed, Default.Settle)
	b.WriteString("| system | late, p50 | p99 | at most | target of p99 | early | killed: ticks | missed | doubled | " +
		"repeated | late, p50 | p99 | load of the machine | commit " +
		"|\n|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %s | %.1f | %s |\n", x.System, ms(x.Quiet.P50), ms(x.Quiet.P99),
			ms(x.Quiet.Max), x.target(), x.Quiet.Early, x.killed(), x.Load, x.Commit)
	}
	b.WriteString("\nThe load is the average for each core when the run began; above 0.5 lateness says more of the " +
		"machine than of the system. What a killed process of Ferry held comes back with its leases: ten seconds of the " +
		"handlers' and three of the scheduler's by default.\n\n| system | settings |\n|---|---|\n")
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s |\n", x.System, x.Settings)
	}
	return b.String()
}

func ms(f float64) string {
	if f >= 1000 {
		return fmt.Sprintf("%.3g s", f/1000)
	}
	return fmt.Sprintf("%.3g ms", f)
}

func (x Row) target() string {
	most, has := targets[x.System]
	switch {
	case !has:
		return "–"
	case x.Quiet.P99 <= most:
		return fmt.Sprintf("≤ %g ms: met", most)
	}
	return fmt.Sprintf("≤ %g ms: **missed**", most)
}

func (x Row) killed() string {
	if x.Killed == nil {
		return "– | – | – | – | – | –"
	}
	k := x.Killed
	return fmt.Sprintf("%d | %d | %d | %d | %s | %s", k.Ticks, k.Missed, k.Doubled, k.Repeated, ms(k.P50), ms(k.P99))
}
