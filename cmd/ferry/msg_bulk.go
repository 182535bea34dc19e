package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

// waiting is the choice of all messages that wait and match, instead of single ones.
type waiting struct {
	all, dryRun, background, yes bool
	states                       []string
	where                        string
	may                          []string
}

const waitingHelp = "With --all it takes all that wait and match --where, a condition as in 'ferry msg ls'. It " +
	"counts them first, and asks, or takes --yes;\nwith --background it becomes an operation that lies in the broker " +
	"(see 'ferry operation')."

func (w *waiting) flags(f *pflag.FlagSet, may ...driver.State) {
	for _, s := range may {
		w.may = append(w.may, string(s))
	}
	f.BoolVar(&w.all, "all", false, "all that wait and match, instead of single ones")
	f.StringSliceVar(&w.states, "state", nil, "with --all: only those that are "+strings.Join(w.may, ", ")+
		" (default: all but held)")
	f.StringVar(&w.where, "where", "", "with --all: only those that meet this condition")
	f.BoolVar(&w.dryRun, "dry-run", false, "with --all: only say how many")
	f.BoolVar(&w.background, "background", false, "with --all: leave it to 'ferry operation run' or a worker of your "+
		"program")
	yesFlag(f, &w.yes)
	onlyOnCommandLine(f, "all", "state", "where", "dry-run", "background")
}

func (w waiting) check(names []string) error {
	switch {
	case w.all && len(names) > 0:
		return usage("both --all and a MESSAGE are given", "use one of them")
	case !w.all && len(names) == 0:
		return usage("no MESSAGE is given", "name messages, or use --all, with --dry-run first")
	case !w.all && (w.dryRun || w.background || w.where != "" || len(w.states) > 0):
		return usage("--state, --where, --dry-run and --background go with --all", "add --all, or leave them out")
	}
	for _, s := range w.states {
		if err := oneOf("state", s, w.may...); err != nil {
			return err
		}
	}
	if w.where == "" {
		return nil
	}
	_, err := deadletter.ParseFilter(w.where)
	return err
}

func (w waiting) messages(topic, group string) kinds.Messages {
	m := kinds.Messages{Topic: topic, Group: group, Where: w.where}
	for _, s := range w.states {
		m.States = append(m.States, driver.State(s))
	}
	return m
}

// run counts, asks, and does it: here, or in the background.
func (w waiting) run(ctx context.Context, s session, topic string, req operation.Request, verb, done string) error {
	what := verb + " %d messages of topic " + topic
	if w.background && !w.dryRun {
		return s.background(ctx, req, w.yes, what)
	}
	q, err := s.operations("")
	if err != nil {
		return err
	}
	plan, err := count(ctx, q, req)
	if err != nil {
		return err
	}
	v := bulkView{Topic: topic, Result: done, Matched: int(plan.Done), Skipped: int(plan.Skipped), Why: counts(plan.Why),
		DryRun: w.dryRun}
	if w.dryRun || plan.Done == 0 {
		return s.one(v, func() error {
			return errors.Join(s.sayf("would "+what, plan.Done), s.sayWhy(deadletter.Report{Why: v.Why}))
		})
	}
	if err := s.confirm(ctx, w.yes, fmt.Sprintf(what, plan.Done), ""); err != nil {
		return err
	}
	p, err := q.Do(ctx, req)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = failure(fmt.Sprintf("interrupted after %d", p.Done), "run it again for the rest")
	}
	v.Done, v.Skipped, v.Why = int(p.Done), int(p.Skipped), counts(p.Why)
	return errors.Join(s.one(v, func() error {
		return errors.Join(s.sayf("%s %d messages of topic %s, skipped %d", done, p.Done, topic, p.Skipped),
			s.sayWhy(deadletter.Report{Why: v.Why}))
	}), err)
}

// counts are the reasons of skipped messages as other commands have them.
func counts(why map[string]int64) map[string]int {
	out := map[string]int{}
	for _, k := range slices.Collect(maps.Keys(why)) {
		out[k] = int(why[k])
	}
	return out
}
