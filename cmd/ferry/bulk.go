package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// bulk is the choice between messages that are named and all that match.
type bulk struct {
	group            string
	filter           deadFilter
	all, dryRun, yes bool
}

func (b *bulk) flags(f *pflag.FlagSet) {
	groupFlag(f, &b.group, "only this group (default: every group)")
	b.filter.flags(f)
	f.BoolVar(&b.all, "all", false, "all that match, instead of single ones")
	f.BoolVar(&b.dryRun, "dry-run", false, "with --all: only say how many")
	yesFlag(f, &b.yes)
	onlyOnCommandLine(f, "all", "dry-run")
}

func (b bulk) check(names []string) error {
	switch {
	case b.all && len(names) > 0:
		return usage("both --all and a MESSAGE are given", "use one of them")
	case !b.all && len(names) == 0:
		return usage("no MESSAGE is given", "name messages, or use --all, with --dry-run first")
	case !b.all && (b.dryRun || b.filter != deadFilter{}):
		return usage("--dry-run, --reason and --error go with --all", "add --all, or leave them out")
	}
	return checkGroup(b.group)
}

// bulkView is what became of all that matched.
type bulkView struct {
	Topic   string `json:"topic"`
	Result  string `json:"result"`
	Matched int    `json:"matched"`
	Done    int    `json:"done"`
	Skipped int    `json:"skipped"` // left, or changed, meanwhile
	DryRun  bool   `json:"dry_run,omitempty"`
}

// run counts, asks, and applies act to exactly the messages that were counted: not to what dies meanwhile.
func (b bulk) run(ctx context.Context, s session, topic, verb, done string, act func([]driver.Target) []error) error {
	targets, err := b.matching(ctx, s, topic)
	if err != nil {
		return err
	}
	v := bulkView{Topic: topic, Result: done, Matched: len(targets), DryRun: b.dryRun}
	if b.dryRun || len(targets) == 0 {
		return s.one(v, func() error {
			return s.sayf("would %s %d dead letters of topic %s", verb, len(targets), topic)
		})
	}
	if err := s.confirm(ctx, b.yes, fmt.Sprintf("%s %d dead letters of topic %s", verb, len(targets), topic), ""); err != nil {
		return err
	}
	failed := v.apply(ctx, targets, act)
	return errors.Join(s.one(v, func() error {
		return s.sayf("%s %d dead letters of topic %s, skipped %d that were gone by then", done, v.Done, topic, v.Skipped)
	}), failed)
}

// apply acts on the targets in parts, until one fails or ctx ends.
func (v *bulkView) apply(ctx context.Context, targets []driver.Target, act func([]driver.Target) []error) error {
	for len(targets) > 0 {
		if ctx.Err() != nil {
			return failure("interrupted", "run it again for the rest")
		}
		part := targets[:min(bulkPart, len(targets))]
		targets = targets[len(part):]
		var failed error
		for _, err := range act(part) {
			switch {
			case err == nil:
				v.Done++
			case errors.Is(err, ferry.ErrNotFound) || errors.Is(err, ferry.ErrConflict):
				v.Skipped++
			default:
				failed = err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// bulkPart is how many messages are changed in one call.
const bulkPart = 100

// matching returns the dead letters that match.
func (b bulk) matching(ctx context.Context, s session, topic string) ([]driver.Target, error) {
	var targets []driver.Target
	sc := scope{topic: topic, group: b.group, state: driver.StateDead}
	err := sc.browse(ctx, s, func(q driver.Query, e driver.Entry) (bool, error) {
		if !b.filter.keep(e) {
			return false, nil
		}
		t := driver.Target{Topic: topic, Group: q.Group, Ref: e.Ref}
		if e.Ref.IsZero() {
			t.ID = e.ID
		}
		targets = append(targets, t)
		return true, nil
	})
	return targets, err
}
