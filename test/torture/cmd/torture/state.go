package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ferrymq/ferry/test/torture/state"
)

// stateFault returns the run of leaders, schedules or named values of that name, which a broker of its own kind can
// have.
func stateFault(name, broker string) (state.Fault, bool) {
	all := state.Faults()
	i := slices.IndexFunc(all, func(f state.Fault) bool { return f.Name == name })
	if i < 0 || !slices.Contains(state.Brokers(), broker) {
		return state.Fault{}, false
	}
	return all[i], true
}

// oneState runs one of them for its share of the minutes, and reports whether it was clean.
func (c *config) oneState(ctx context.Context, f state.Fault) (clean bool, err error) {
	o := state.Options{Broker: c.options.Broker, Fault: f.Name, Seed: c.options.Seed, Load: max(c.share(), f.Least),
		TTL: c.options.Lease}
	if o.Dir, err = directory(c.keep, f.Name, o.Seed); err != nil {
		return false, err
	}
	report, err := state.Run(ctx, o)
	if err != nil {
		return false, fmt.Errorf("%s, seed %d (tape in %s): %w", f.Name, o.Seed, o.Dir, err)
	}
	fmt.Println(report.Verdict())
	if !report.OK() || c.keep != "" {
		fmt.Printf("  tape: %s\n", o.Dir)
		return report.OK(), nil
	}
	return true, os.RemoveAll(o.Dir)
}

// share is how much of the minutes one run has.
func (c *config) share() time.Duration {
	return time.Duration(c.minutes*float64(time.Minute)) / time.Duration(len(c.faults)+len(c.state))
}
