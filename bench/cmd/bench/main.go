// Command bench measures Ferry beside its peers. Run it in the directory bench: go run ./cmd/bench -broker memory
// -quick.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/report"
	"github.com/ferrymq/ferry/bench/run"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := bench(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	broker  string
	quick   bool
	only    string
	list    bool
	docs    bool
	results string
	page    string
	profile string
	sample  string // a job for a process of its own; not for people
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&s.broker, "broker", "all", "which brokers to measure, one after the other: names of -list with commas, "+
		"or all")
	f.BoolVar(&s.quick, "quick", false, "3 minutes instead of 30, less exact")
	f.StringVar(&s.only, "only", "", "only scenarios whose names contain one of these words, separated by commas; "+
		"writes no results")
	f.BoolVar(&s.list, "list", false, "list brokers, scenarios and systems")
	f.BoolVar(&s.docs, "docs", false, "only judge the results there are by the targets as they are now, and write the "+
		"page of documentation again")
	f.StringVar(&s.results, "results", "results", "directory of the results; it is made")
	f.StringVar(&s.page, "page", "../docs/benchmarks.md", "page of documentation to write")
	f.StringVar(&s.profile, "profile", "", "directory for a CPU profile of each measurement")
	f.StringVar(&s.sample, "sample", "", "internal: take one measurement and print it as JSON")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q; there are only flags: -broker, -quick, -only, -list, -docs, "+
			"-results, -page, -profile", f.Arg(0))
	}
	return s, nil
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	s, err := parse(args, out)
	say := log.New(out, "", 0)
	switch {
	case err != nil:
		return err
	case s.sample != "":
		return sample(ctx, s.sample, out)
	case s.list:
		list(say)
		return nil
	case s.docs:
		if err := report.JudgeAll(s.results); err != nil {
			return err
		}
		return writePage(s, say)
	}
	plans, err := choose(s.broker)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.results, 0o755); err != nil {
		return err
	}
	commit := meter.Commit(ctx) // what this program was made from, whatever is committed while it runs
	var failed error
	for _, p := range plans {
		if err := measure(ctx, s, p, commit, say); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.Broker, err)) // the others are measured all the same
		}
		if ctx.Err() != nil {
			return failed
		}
	}
	if s.only != "" {
		return failed
	}
	return errors.Join(failed, writePage(s, say))
}

// choose returns the plans of brokers that are named with commas between them, or all.
func choose(brokers string) ([]plan.Plan, error) {
	if brokers == "all" {
		return plan.Brokers(), nil
	}
	var plans []plan.Plan
	for _, name := range words(brokers) {
		p, err := plan.Find(name)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// measure runs one plan, prints it and writes its results.
func measure(ctx context.Context, s settings, p plan.Plan, commit string, say *log.Logger) (err error) {
	size := scenario.Full()
	if s.quick {
		size = scenario.Quick()
	}
	if p, err = p.Select(words(s.only)); err != nil {
		return err
	}
	if p.Prepare != nil {
		stop, err := p.Prepare()
		if err != nil {
			return err
		}
		defer func() { _ = stop() }()
	}
	execute := run.Execute(inOwnProcess)
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o755); err != nil {
			return err
		}
		execute = profiled(s.profile, execute)
	}
	began := time.Now()
	rounds, skipped := run.Plan(ctx, p, size, execute, func(r run.Round) { progress(say, r) })
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	r := report.Report{Broker: p.Broker, Size: size.Name, Command: command(s, p), Commit: commit,
		Date: began.UTC().Truncate(time.Second),
		Took: time.Since(began).Round(time.Second).String(), Machine: meter.ThisMachine(), Systems: infos(p),
		Rows: report.Rows(p, rounds), Skipped: skipped, Rounds: rounds}
	say.Print("\n" + r.Table())
	if s.only == "" {
		path, err := r.Write(s.results)
		if err != nil {
			return err
		}
		say.Println("wrote", path)
	}
	if failed := r.Failed(p.Ours.Info().Name); len(failed) > 0 {
		return fmt.Errorf("%d measurements of our own failed, the first: %s", len(failed), failed[0].Error)
	}
	return nil
}

// words splits what -only says.
func words(only string) []string {
	return strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
}

func infos(p plan.Plan) []system.Info {
	var all []system.Info
	for _, s := range p.Systems() {
		all = append(all, s.Info())
	}
	return all
}

func command(s settings, p plan.Plan) string {
	c := "make bench BROKER=" + p.Broker
	if s.quick {
		c += " QUICK=1"
	}
	return c
}

func progress(say *log.Logger, r run.Round) {
	what := ""
	for _, name := range []string{"rate", "p99", "overhead", "beyond", "cpu", "open", "bytes"} {
		if v, ok := r.Values[name]; ok {
			what = fmt.Sprintf("%s %.6g", name, v)
			break
		}
	}
	if r.Error != "" {
		what = "FAILED: " + r.Error
	}
	if r.Noisy {
		what += fmt.Sprintf("  (noisy: %.0f %% stolen, %.0f %% used by others)", 100*r.Reading.Steal, 100*r.Reading.Others)
	}
	say.Printf("round %d  %-22s %-24s %s\n", r.Round, r.Scenario, r.System, what)
}

func writePage(s settings, say *log.Logger) error {
	if err := report.WritePages(s.results, s.page); err != nil {
		return err
	}
	say.Println("wrote", s.page)
	return nil
}

func list(say *log.Logger) {
	for _, p := range plan.Brokers() {
		say.Printf("broker %s\n  systems\n", p.Broker)
		for _, s := range p.Systems() {
			say.Printf("    %s\n", s.Info().Name)
		}
		say.Println("  scenarios")
		for _, s := range p.Scenarios {
			say.Printf("    %-22s %s\n", s.Name, s.Title)
		}
	}
}
