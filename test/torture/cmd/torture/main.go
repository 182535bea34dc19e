// Command torture runs producers and consumers against a broker, breaks things by schedule, and says whether every
// promise was kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ferrymq/ferry/test/torture/checker"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		stop()
		os.Exit(1)
	}
}

// config is what the command line asks for.
type config struct {
	options rig.Options
	faults  []rig.Fault
	minutes float64
	keep    string
	report  string
	check   string
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	if c.check != "" {
		return recheck(c.check)
	}
	var reports []*checker.Report
	violated := 0
	for round := range c.rounds() {
		r, err := c.one(ctx, round)
		if err != nil {
			return err
		}
		reports = append(reports, r)
		if !r.OK {
			violated++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	summary(reports)
	if err := write(c.report, reports); err != nil {
		return err
	}
	if violated > 0 {
		return fmt.Errorf("%d of %d runs broke a promise", violated, len(reports))
	}
	return nil
}

func parse(args []string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	var fault, plan string
	flags.StringVar(&c.options.Broker, "broker", "memory", "broker: "+strings.Join(rig.Brokers(), ", ")+", or the URL of a running one")
	flags.StringVar(&fault, "fault", "all", "fault by name, several with commas, or all")
	flags.StringVar(&plan, "schedule", "", "your own schedule instead of a fault, such as 'every 1s kill consumer any'")
	flags.Uint64Var(&c.options.Seed, "seed", 1, "seed of every random choice")
	flags.Float64Var(&c.minutes, "minutes", 1, "minutes of load, over all faults")
	flags.IntVar(&c.options.Rate, "rate", 500, "messages per second")
	flags.DurationVar(&c.options.Lease, "lease", 2*time.Second, "lease of the consumers")
	flags.IntVar(&c.options.Producers, "producers", 2, "producers")
	flags.IntVar(&c.options.Consumers, "consumers", 3, "consumers")
	flags.StringVar(&c.keep, "dir", "", "keep the histories here (otherwise only those of a violation are kept, in a temporary directory)")
	flags.StringVar(&c.report, "json", "", "write the reports to this file as JSON")
	flags.StringVar(&c.check, "check", "", "only check the histories in this directory again")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("what is %q? Everything is a flag: see -help", flags.Arg(0))
	}
	if c.minutes <= 0 || c.options.Rate < 1 || c.options.Producers < 1 || c.options.Consumers < 2 {
		return nil, errors.New("-minutes, -rate and -producers must be positive, and -consumers at least 2: somebody must take over")
	}
	if _, err := rig.Lookup(c.options.Broker); err != nil {
		return nil, err
	}
	if plan != "" {
		c.faults = []rig.Fault{{Name: "custom", Schedule: plan}}
		return c, nil
	}
	return c, c.choose(fault)
}

// choose finds faults by their names.
func (c *config) choose(names string) error {
	all := rig.Faults()
	if names == "all" {
		c.faults = all
		return nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(f rig.Fault) bool { return f.Name == name })
		if i < 0 {
			var list strings.Builder
			for _, f := range all {
				fmt.Fprintf(&list, "\n  %-14s %s", f.Name, f.Help)
			}
			return fmt.Errorf("no fault %q; there are:\n  %-14s %s%s", name, "all", "each of these", list.String())
		}
		c.faults = append(c.faults, all[i])
	}
	return nil
}

type round struct {
	fault rig.Fault
	load  time.Duration
	seed  uint64
}

// rounds shares the minutes between the faults: each gets at least three seconds.
func (c *config) rounds() func(func(round) bool) {
	each := max(time.Duration(c.minutes*float64(time.Minute))/time.Duration(len(c.faults)), 3*time.Second)
	return func(yield func(round) bool) {
		for _, f := range c.faults {
			seed := c.options.Seed
			for left := each; left > 0; left -= rig.Round {
				if !yield(round{f, min(left, rig.Round), seed}) {
					return
				}
				seed++
			}
		}
	}
}

// one runs one round, and keeps its histories when they are asked for or show a violation.
func (c *config) one(ctx context.Context, r round) (*checker.Report, error) {
	o := c.options
	o.Fault, o.Load, o.Seed = r.fault, r.load, r.seed
	dir, err := directory(c.keep, r)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	report, err := rig.Run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("fault %s, seed %d (histories in %s): %w", r.fault.Name, r.seed, dir, err)
	}
	fmt.Println(report.Verdict())
	if !report.OK || c.keep != "" {
		fmt.Printf("  histories: %s\n", dir)
		return report, write(dir+"/report.json", report)
	}
	return report, os.RemoveAll(dir)
}

func directory(keep string, r round) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "ferry-torture-")
	}
	dir := fmt.Sprintf("%s/%s-%d", keep, r.fault.Name, r.seed)
	return dir, os.MkdirAll(dir, 0o700)
}

func write(name string, v any) error {
	if name == "" {
		return nil
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o600)
}

func recheck(dir string) error {
	events, err := history.Read(dir)
	if err != nil {
		return err
	}
	r, err := checker.Check(events)
	if err != nil {
		return err
	}
	fmt.Println(r.Verdict())
	if !r.OK {
		return errors.New("a promise was broken")
	}
	return nil
}

// summary is the last line: what all runs together come to.
func summary(reports []*checker.Report) {
	var published, delivered, crashes, faults, duplicates, clean int
	for _, r := range reports {
		published += r.Published
		delivered += r.Delivered
		crashes += r.Crashes
		faults += r.Faults
		for cause, n := range r.Duplicates {
			if cause != "retry" {
				duplicates += n
			}
		}
		if r.OK {
			clean++
		}
	}
	fmt.Printf("%d of %d runs clean: %d messages acknowledged, %d handler starts, %d of them explained duplicates, %d crashes, %d other faults\n",
		clean, len(reports), published, delivered, duplicates, crashes, faults)
}
