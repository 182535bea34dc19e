// Command torture runs producers and consumers against a broker, breaks things by schedule, and says whether every
// promise was kept.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/test/torture/checker"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/rig"
	"github.com/ferrymq/ferry/test/torture/state"
)

func main() {
	if state.Child() {
		return
	}
	goredis.SetLogger(quiet{}) // faults are what this is about
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "torture:", err)
		stop()
		os.Exit(1)
	}
}

// quiet drops what the Redis client says of broken connections.
type quiet struct{}

// Printf drops it.
func (quiet) Printf(context.Context, string, ...any) {}

// config is what the command line asks for.
type config struct {
	options rig.Options
	faults  []rig.Fault
	state   []state.Fault // what is tortured beside messages
	notFor  []string      // what -fault all leaves out, and why
	minutes float64
	keep    string
	report  string
	check   string
	older   string
	all     bool // whatever the broker can have
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	if c.check != "" {
		return recheck(c.check)
	}
	if rig.Spawns(c.options.Broker) && len(c.faults) > 0 {
		if c.options.Bin, err = rig.Build(ctx); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(c.options.Bin) }()
	}
	if slices.ContainsFunc(c.faults, rig.Fault.Upgrades) {
		if c.options.Older, err = rig.BuildOlder(ctx, c.older); err != nil && !c.all {
			return err
		}
		if err != nil { // a clone without history: the others are no worse for that
			c.leaveOutUpgrades(err.Error())
		}
		defer func() { _ = os.RemoveAll(c.options.Older) }()
	}
	for _, line := range c.notFor {
		fmt.Println(line)
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
	if len(reports) > 0 {
		summary(reports)
	}
	if err := write(c.report, reports); err != nil {
		return err
	}
	for _, f := range c.state {
		clean, err := c.oneState(ctx, f)
		if err != nil {
			return err
		}
		if !clean {
			violated++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if violated > 0 {
		return fmt.Errorf("%d of %d runs broke a promise", violated, len(reports)+len(c.state))
	}
	return nil
}

func parse(args []string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	var fault, plan string
	flags.StringVar(&c.options.Broker, "broker", "memory", "broker: "+strings.Join(rig.Brokers(), ", ")+
		", or the URL of a server that runs")
	flags.StringVar(&fault, "fault", "all", "fault by name, several with commas, or all")
	flags.StringVar(&plan, "schedule", "", "your own schedule instead of a fault, such as 'every 1s kill consumer any'")
	flags.Uint64Var(&c.options.Seed, "seed", 1, "seed of every random choice")
	flags.Float64Var(&c.minutes, "minutes", 1, "minutes of load, over all faults; some take longer in any case")
	flags.IntVar(&c.options.Rate, "rate", 500, "messages per second")
	flags.DurationVar(&c.options.Lease, "lease", 0, "lease of the consumers (default 2s, or the shortest that the "+
		"broker has), or of leaders (default 5s)")
	flags.IntVar(&c.options.Producers, "producers", 2, "producers")
	flags.IntVar(&c.options.Consumers, "consumers", 3, "consumers")
	flags.StringVar(&c.older, "older", rig.OlderCommit, "commit from which the faults upgrade and upgrade-app begin; "+
		"empty leaves them out of all")
	flags.StringVar(&c.keep, "dir", "", "keep the histories here (otherwise only those of a violation are kept, in a "+
		"temporary directory)")
	flags.StringVar(&c.report, "json", "", "write the reports to this file as JSON")
	flags.StringVar(&c.check, "check", "", "only check the histories in this directory again")
	flags.Usage = func() {
		_, _ = fmt.Fprintln(flags.Output(), "torture runs producers and consumers against a broker, breaks things, and "+
			"judges. Flags:")
		flags.PrintDefaults()
		_, _ = fmt.Fprintf(flags.Output(), "Faults, of which all are those that the broker can have:%s\n",
			listing(rig.Faults(), state.Faults()))
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("what is %q? Everything is a flag: see -help", flags.Arg(0))
	}
	if c.minutes <= 0 || c.options.Rate < 1 || c.options.Producers < 1 || c.options.Consumers < 2 {
		return nil, errors.New("-minutes, -rate and -producers must be positive, and -consumers at least 2: somebody must " +
			"take over")
	}
	fit, misfits, err := rig.FaultsFor(c.options.Broker)
	if err != nil {
		return nil, err
	}
	if plan != "" {
		c.faults = []rig.Fault{{Name: "custom", Schedule: plan}}
		return c, nil
	}
	return c, c.choose(fault, fit, misfits)
}

// choose finds faults by their names. All are those that this broker can have; the others are named.
func (c *config) choose(names string, fit []rig.Fault, misfits map[string]string) error {
	if names == "all" {
		c.faults, c.all = fit, true
		if slices.Contains(state.Brokers(), c.options.Broker) {
			c.state = state.Faults()
		}
		if c.older == "" {
			c.leaveOutUpgrades("no older commit is asked for")
		}
		for _, name := range slices.Sorted(maps.Keys(misfits)) {
			c.notFor = append(c.notFor, fmt.Sprintf("not for this broker: %-24s %s", name, misfits[name]))
		}
		return nil
	}
	for name := range strings.SplitSeq(names, ",") {
		if f, ok := stateFault(name, c.options.Broker); ok {
			c.state = append(c.state, f)
			continue
		}
		i := slices.IndexFunc(fit, func(f rig.Fault) bool { return f.Name == name })
		if i < 0 {
			return noFault(name, c.options.Broker, fit, misfits)
		}
		c.faults = append(c.faults, fit[i])
	}
	return nil
}

// leaveOutUpgrades leaves out what begins with an older commit.
func (c *config) leaveOutUpgrades(why string) {
	c.faults = slices.DeleteFunc(c.faults, rig.Fault.Upgrades)
	c.notFor = append(c.notFor, "left out: upgrades, because "+why)
}

func noFault(name, broker string, fit []rig.Fault, misfits map[string]string) error {
	why := fmt.Sprintf("no fault %q", name)
	if lacks, ok := misfits[name]; ok {
		why = fmt.Sprintf("fault %s is not for %s: %s", name, broker, lacks)
	}
	beside := state.Faults()
	if !slices.Contains(state.Brokers(), broker) {
		beside = nil
	}
	return fmt.Errorf("%s; there are:\n  %-24s %s%s", why, "all", "each of these", listing(fit, beside))
}

// listing names faults, one in each line.
func listing(faults []rig.Fault, beside []state.Fault) string {
	var list strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&list, "\n  %-24s %s", f.Name, f.Help)
	}
	for _, f := range beside {
		fmt.Fprintf(&list, "\n  %-24s %s", f.Name, f.Help)
	}
	return list.String()
}

type round struct {
	fault rig.Fault
	load  time.Duration
	seed  uint64
}

// rounds shares the minutes between the faults: each gets as long as it needs to show anything.
func (c *config) rounds() func(func(round) bool) {
	share := c.share()
	return func(yield func(round) bool) {
		for _, f := range c.faults {
			seed := c.options.Seed
			for left := max(share, f.Least, 3*time.Second); left > 0; left -= f.Longest() {
				if !yield(round{f, min(left, f.Longest()), seed}) {
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
	dir, err := directory(c.keep, r.fault.Name, r.seed)
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

func directory(keep, fault string, seed uint64) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "ferry-torture-")
	}
	dir := fmt.Sprintf("%s/%s-%d", keep, fault, seed)
	if _, err := os.Stat(dir); err == nil {
		return "", fmt.Errorf("%s has the histories of another run: remove it, or choose another -dir", dir)
	}
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

// summary is the last lines: what all runs together come to.
func summary(reports []*checker.Report) {
	var published, delivered, crashes, faults, forgotten, clean int
	duplicates := map[string]int{}
	violations := map[checker.Kind]int{}
	for _, r := range reports {
		published += r.Published
		delivered += r.Delivered
		crashes += r.Crashes
		faults += r.Faults
		forgotten += r.Forgotten
		for cause, n := range r.Duplicates {
			duplicates[cause] += n
		}
		for kind, n := range r.Violations {
			violations[kind] += n
		}
		if r.OK {
			clean++
		}
	}
	fmt.Printf("%d of %d runs clean: %d messages acknowledged, %d handler starts, %d crashes, %d other faults\n", clean,
		len(reports), published, delivered, crashes, faults)
	fmt.Printf("  %d lost, %d phantom, %d corrupted, %d out of order, %d early; %d forgotten by servers where the level "+
		"allows it\n",
		violations[checker.Lost], violations[checker.Phantom], violations[checker.Corrupted], violations[checker.Order],
		violations[checker.Early], forgotten)
	fmt.Printf("  explained starts beyond the first: %v\n", duplicates)
}
