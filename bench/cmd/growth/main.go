// Command growth measures whether what a message costs stays the same while a broker grows. Run it in the directory
// bench: go run ./cmd/growth -broker all. It starts the servers that it needs, and prints its figures as a table in
// Markdown.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/growth"
	"github.com/ferrymq/ferry/bench/meter"
)

// brokers are all that can grow. A gateway grows as the broker behind it does.
var brokers = []string{"memory", "disk", "redis", "redisstream", "kafka"}

// most is by how much a unit may cost more at the larger size.
const most = 1.2

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

// file is what -json writes.
type file struct {
	Commit  string        `json:"commit"`
	Began   time.Time     `json:"began"`
	Machine meter.Machine `json:"machine"`
	Load    string        `json:"load"`
	Rows    []growth.Row  `json:"rows"`
}

func run(ctx context.Context) error {
	broker := flag.String("broker", "all", "brokers with commas, or all: "+strings.Join(brokers, ", "))
	only := flag.String("only", "", "shapes with commas; default: all")
	rounds := flag.Int("rounds", 3, "how often each size is measured")
	within := flag.Duration("within", time.Minute, "how long one measurement may take; a size that takes longer is "+
		"not reached, and none that is larger")
	name := flag.String("json", "", "write all rounds to this file, too")
	flag.Parse()
	asked, shapes, err := choose(*broker, *only)
	if err != nil {
		return err
	}
	out := file{Commit: meter.Commit(ctx), Began: time.Now().UTC(), Machine: meter.ThisMachine(), Load: loadAverage()}
	fmt.Printf("%s, commit %s, %v, load %s\n\n", out.Began.Format(time.DateTime), out.Commit, out.Machine, out.Load)
	head(os.Stdout)
	for _, b := range asked {
		for _, s := range shapes {
			if why := s.Without[b]; why != "" {
				fmt.Printf("| %s | %s | – | – | – | – | not measured: %s |\n", b, s.Title, why)
				continue
			}
			rows, err := growth.Measure(ctx, b, s, growth.Effort{Rounds: *rounds, Each: *within, Scale: 1})
			if err != nil {
				return err
			}
			write(os.Stdout, s, rows)
			out.Rows = append(out.Rows, rows...)
		}
	}
	return save(*name, out)
}

// choose returns the brokers and shapes that are asked for, or an error that lists those that exist.
func choose(broker, only string) ([]string, []growth.Shape, error) {
	asked := strings.Split(broker, ",")
	if broker == "all" {
		asked = brokers
	}
	for _, b := range asked {
		if !slices.Contains(brokers, b) {
			return nil, nil, fmt.Errorf("there is no broker %q; there are: %s, and all", b, strings.Join(brokers, ", "))
		}
	}
	if only == "" {
		return asked, growth.Shapes(), nil
	}
	var chosen []growth.Shape
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(growth.Shapes(), func(s growth.Shape) bool { return s.Name == name })
		if i < 0 {
			var names []string
			for _, s := range growth.Shapes() {
				names = append(names, s.Name)
			}
			return nil, nil, fmt.Errorf("there is no shape %q; there are: %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, growth.Shapes()[i])
	}
	return asked, chosen, nil
}

func head(w io.Writer) {
	_, _ = fmt.Fprintln(w, "| broker | what grows | from | to | ratio | wanted | idle |\n|---|---|--:|--:|--:|---|---|")
}

// write writes a line for each size that is compared with the first.
func write(w io.Writer, s growth.Shape, rows []growth.Row) {
	if len(rows[0].Rounds) == 0 {
		_, _ = fmt.Fprintf(w, "| %s | %s | – | – | – | – | not reached: %s |\n", rows[0].Broker, s.Title, rows[0].Unreached)
		return
	}
	first := rows[0].Median()
	for _, r := range rows[1:] {
		if len(r.Rounds) == 0 {
			_, _ = fmt.Fprintf(w, "| %s | %s | %s: %.2f µs/%s | %s: – | – | – | not reached: %s |\n", r.Broker, s.Title,
				growth.Count(rows[0].Size), first.PerUnit(), s.Unit, growth.Count(r.Size), r.Unreached)
			continue
		}
		c := r.Median()
		ratio, verdict := c.PerUnit()/first.PerUnit(), "met"
		if ratio > most {
			verdict = "**missed**"
		}
		idle := ""
		if s.Idle != "" {
			idle = fmt.Sprintf("%.0f B of an idle %s", c.IdleBytes, s.Idle)
		}
		_, _ = fmt.Fprintf(w, "| %s | %s | %s: %.2f µs/%s | %s: %.2f µs/%s | %.2f× | ≤ %.1f×: %s | %s |\n", r.Broker, s.Title,
			growth.Count(rows[0].Size), first.PerUnit(), s.Unit, growth.Count(r.Size), c.PerUnit(), s.Unit, ratio, most, verdict,
			idle)
	}
}

func save(name string, out file) error {
	if name == "" {
		return nil
	}
	text, err := json.MarshalIndent(out, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// loadAverage is what else the machine does.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return string(text[:min(len(text), 14)])
}
