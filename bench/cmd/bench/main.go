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
	"path/filepath"
	"strings"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/periodic"
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
	f.StringVar(&s.broker, "broker", "all", "which broker to measure: one of -list, or all")
	f.BoolVar(&s.quick, "quick", false, "3 minutes instead of 30, less exact")
	f.StringVar(&s.only, "only", "", "only scenarios whose names contain one of these words, separated by commas; "+
		"writes no results")
	f.BoolVar(&s.list, "list", false, "list brokers, scenarios and systems")
	f.BoolVar(&s.docs, "docs", false, "only write the page of documentation again, from the results there are")
	f.StringVar(&s.results, "results", "results", "directory of the results")
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
		return writePage(s, say)
	}
	plans := plan.Brokers()
	if s.broker != "all" {
		p, err := plan.Find(s.broker)
		if err != nil {
			return err
		}
		plans = []plan.Plan{p}
	}
	for _, p := range plans {
		if err := measure(ctx, s, p, say); err != nil {
			return err
		}
	}
	if s.only != "" {
		return nil
	}
	return writePage(s, say)
}

// measure runs one plan, prints it and writes its results.
func measure(ctx context.Context, s settings, p plan.Plan, say *log.Logger) error {
	size := scenario.Full()
	if s.quick {
		size = scenario.Quick()
	}
	p, err := p.Select(words(s.only))
	if err != nil {
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
	r := report.Report{Broker: p.Broker, Size: size.Name, Command: command(s, p), Commit: meter.Commit(ctx),
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
	reports, err := report.ReadAll(s.results)
	if err != nil {
		return err
	}
	ticks, err := periodic.Read(filepath.Join(s.results, periodic.File))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.page), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.page, []byte(report.Docs(reports, ticks.Section())), 0o644); err != nil {
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
