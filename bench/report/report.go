// Package report turns measurements into rows, a table for the terminal, a JSON file and a page of documentation.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/committed"
	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/system"
)

// Report is everything known about one run of one broker's plan.
type Report struct {
	Broker  string        `json:"broker"`
	Size    string        `json:"size"`
	Command string        `json:"command"`
	Commit  string        `json:"commit"`
	Date    time.Time     `json:"date"`
	Took    string        `json:"took"`
	Machine meter.Machine `json:"machine"`
	// Systems are ours first, then the peers, then the limit, with version and settings.
	Systems []system.Info `json:"systems"`
	Rows    []Row         `json:"rows"`
	Skipped []run.Skipped `json:"skipped,omitempty"`
	Rounds  []run.Round   `json:"rounds"`
	// Kept is all that is left of the rounds of a run whose file was made from its page. Nil: Rounds has them.
	Kept *Kept `json:"kept,omitempty"`
}

// Kept counts measurements that were not kept themselves.
type Kept struct {
	Measurements int `json:"measurements"`
	Noisy        int `json:"noisy"`
}

// measurements is how many were taken, and how many of them were noisy.
func (r Report) measurements() (all, noisy int) {
	if r.Kept != nil {
		return r.Kept.Measurements, r.Kept.Noisy
	}
	return len(r.Rounds), r.noisy()
}

// CPU is µs of processor time for one message: of the process, and of the servers beside it.
type CPU struct {
	Process float64 `json:"process"`
	Server  float64 `json:"server,omitempty"`
}

// Row is one figure of ours, beside one of somebody else, or with a target, or both.
type Row struct {
	Scenario string `json:"scenario"`
	// Of is the variant of ours whose figure it is; empty for ours itself.
	Of      string   `json:"of,omitempty"`
	Title   string   `json:"title"`
	Measure string   `json:"measure"`
	Unit    string   `json:"unit"`
	Lower   bool     `json:"lower_is_better,omitempty"`
	Ours    *float64 `json:"ours"`
	// Against is who; empty where the figure itself has the target.
	Against string   `json:"against"`
	Theirs  *float64 `json:"theirs"`
	// Ratio is ours ÷ theirs.
	Ratio  *float64 `json:"ratio"`
	Target string   `json:"target"`
	Met    *bool    `json:"met"`

	// Spreads are (greatest − least) ÷ median over the rounds. CPUs are µs of processor time for one message.
	OursSpread   float64 `json:"ours_spread"`
	TheirsSpread float64 `json:"theirs_spread,omitempty"`
	OursCPU      CPU     `json:"ours_cpu_us,omitzero"`
	TheirsCPU    CPU     `json:"theirs_cpu_us,omitzero"`
	// Note says what went wrong: who failed, in which way, how often.
	Note string `json:"note,omitempty"`
}

// Missed returns the rows whose target was not met.
func (r Report) Missed() []Row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Met == nil || *row.Met })
}

// Failed returns the measurements that came to nothing, of one system.
func (r Report) Failed(system string) []run.Round {
	return slices.DeleteFunc(slices.Clone(r.Rounds), func(m run.Round) bool { return m.Error == "" || m.System != system })
}

// File is the name of the report's file: a quick run never replaces the figures of a full one.
func (r Report) File() string {
	if r.Size == "full" {
		return r.Broker + ".json"
	}
	return r.Broker + "-" + r.Size + ".json"
}

// Judged is the report by the scenarios and targets of a plan as it is now: a target that was raised since the run is
// missed where it is missed. Without its rounds a report stays as it is.
func (r Report) Judged(p plan.Plan) Report {
	if len(r.Rounds) > 0 {
		r.Rows = Rows(p, r.Rounds)
	}
	return r
}

// Write stores the report in a directory, and returns the path.
func (r Report) Write(dir string) (string, error) {
	text, err := r.text()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, r.File())
	return path, os.WriteFile(path, text, 0o644)
}

func (r Report) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// ReadAll reads the reports in a directory, in order of their brokers: the full one of each, or else its quick one.
func ReadAll(dir string) ([]Report, error) {
	every, err := readEvery(dir)
	if err != nil {
		return nil, err
	}
	byBroker := map[string]Report{}
	for _, r := range every {
		if old, ok := byBroker[r.Broker]; !ok || old.Size != "full" {
			byBroker[r.Broker] = r
		}
	}
	var all []Report
	for _, r := range byBroker {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Report) int { return strings.Compare(a.Broker, b.Broker) })
	return all, nil
}

// JudgeAll judges every report in a directory again, and stores it. One of a broker that has no plan any more stays.
func JudgeAll(dir string) error {
	every, err := readEvery(dir)
	if err != nil {
		return err
	}
	for _, r := range every {
		p, err := plan.Find(r.Broker)
		if err != nil {
			continue
		}
		if _, err := r.Judged(p).Write(dir); err != nil {
			return err
		}
	}
	return nil
}

// readEvery reads all reports in a directory, in order of their files.
func readEvery(dir string) ([]Report, error) {
	return committed.Read(dir, "*.json", committed.JSON[Report])
}
