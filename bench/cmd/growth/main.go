// Command growth measures whether what a message costs stays the same while a broker grows. Run it in the directory
// bench: go run ./cmd/growth -broker all. It starts the servers that it needs, and prints its figures as a table in
// Markdown.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/growth"
	"github.com/ferrymq/ferry/bench/meter"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	broker := flag.String("broker", "all", "brokers with commas, or all: "+strings.Join(growth.Brokers(), ", "))
	only := flag.String("only", "", "shapes with commas; default: all")
	rounds := flag.Int("rounds", 3, "how often each size is measured")
	within := flag.Duration("within", time.Minute, "how long one measurement may take; a size that takes longer is "+
		"not reached, and none that is larger")
	name := flag.String("json", "", "write all rounds to this file, too; the pages are made from those in "+
		"results/"+growth.Dir+" by bench -docs")
	flag.Parse()
	asked, shapes, err := choose(*broker, *only)
	if err != nil {
		return err
	}
	out := growth.Report{Commit: meter.Commit(ctx), Began: time.Now().UTC(), Machine: meter.ThisMachine(),
		Load: loadAverage()}
	fmt.Printf("%s, commit %s, %v, load %s\n\n", out.Began.Format(time.DateTime), out.Commit, out.Machine, out.Load)
	growth.Head(os.Stdout)
	for _, b := range asked {
		for _, s := range shapes {
			rows, err := growth.Measure(ctx, b, s, growth.Effort{Rounds: *rounds, Each: *within, Scale: 1})
			if err != nil {
				return err
			}
			growth.Lines(os.Stdout, s, rows)
			out.Rows = append(out.Rows, rows...)
		}
	}
	if *name == "" {
		return nil
	}
	return out.Write(*name)
}

// choose returns the brokers and shapes that are asked for, or an error that lists those that exist.
func choose(broker, only string) ([]string, []growth.Shape, error) {
	asked := strings.Split(broker, ",")
	if broker == "all" {
		asked = growth.Brokers()
	}
	for _, b := range asked {
		if !slices.Contains(growth.Brokers(), b) {
			return nil, nil, fmt.Errorf("there is no broker %q; there are: %s, and all", b, strings.Join(growth.Brokers(), ", "))
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

// loadAverage is what else the machine does.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return string(text[:min(len(text), 14)])
}
