package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// bulk is the choice between letters that are named and all that match.
type bulk struct {
	store            store
	group            string
	filter           letterFilter
	rate             float64
	all, dryRun, yes bool
}

func (b *bulk) flags(f *pflag.FlagSet) {
	if b.store.state == driver.StateDead {
		groupFlag(f, &b.group, "only this group (default: every group)")
	}
	b.filter.flags(f, b.store)
	f.BoolVar(&b.all, "all", false, "all that match, instead of single ones")
	f.BoolVar(&b.dryRun, "dry-run", false, "with --all: only say how many, and which not and why")
	f.Float64Var(&b.rate, "rate", 0, "with --all: at most this many in a second (default: as fast as it goes)")
	yesFlag(f, &b.yes)
	onlyOnCommandLine(f, "all", "dry-run", "rate")
}

func (b bulk) check(names []string) error {
	switch {
	case b.all && len(names) > 0:
		return usage("both --all and a MESSAGE are given", "use one of them")
	case !b.all && len(names) == 0:
		return usage("no MESSAGE is given", "name messages, or use --all, with --dry-run first")
	case !b.all && (b.dryRun || b.rate != 0 || !b.filter.empty()):
		return usage("--dry-run, --rate, --where, --reason and --error go with --all", "add --all, or leave them out")
	case b.rate < 0:
		return usage(fmt.Sprintf("--rate %v is negative", b.rate), "leave it out for no limit")
	}
	if _, err := b.filter.compile(); err != nil {
		return err
	}
	return checkGroup(b.group)
}

func (b bulk) selection(topic string) (deadletter.Selection, error) {
	where, err := b.filter.compile()
	return deadletter.Selection{Topic: topic, Group: b.group, State: b.store.state, Where: where}, err
}

// bulkView is what became of all that matched.
type bulkView struct {
	Topic   string         `json:"topic"`
	Result  string         `json:"result"`
	Matched int            `json:"matched"`
	Done    int            `json:"done"`
	Skipped int            `json:"skipped"` // left, or changed, meanwhile, or not eligible
	Why     map[string]int `json:"why,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"`
}

// deed is what is done to letters: a replay or a removal.
type deed struct {
	verb, done string
	replay     deadletter.ReplayOptions
	remove     bool
}

func (d deed) run(ctx context.Context, q *deadletter.Queue, r deadletter.ReplayOptions) (deadletter.Report, error) {
	if d.remove {
		return q.Remove(ctx, deadletter.RemoveOptions{Selection: r.Selection, Rate: r.Rate, DryRun: r.DryRun, Each: r.Each})
	}
	return q.Replay(ctx, r)
}

// run counts, asks, and does it to exactly the letters that were counted: not to what dies meanwhile.
func (b bulk) run(ctx context.Context, s session, topic string, d deed) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	r := d.replay
	if r.Selection, err = b.selection(topic); err != nil {
		return err
	}
	r.Rate, r.DryRun = b.rate, true
	plan, err := d.run(ctx, queue, r)
	if err != nil {
		return err
	}
	s.noteReason(b.filter.reason, plan.Done+plan.Skipped)
	if b.dryRun || plan.Done == 0 {
		v := bulkView{Topic: topic, Result: d.done, Matched: plan.Done, Skipped: plan.Skipped, Why: plan.Why,
			DryRun: b.dryRun}
		return s.one(v, func() error {
			return errors.Join(s.sayf("would %s %d %s of topic %s", d.verb, plan.Done, b.store.many, topic), s.sayWhy(plan))
		})
	}
	if err := s.confirm(ctx, b.yes, fmt.Sprintf("%s %d %s of topic %s", d.verb, plan.Done, b.store.many, topic),
		""); err != nil {
		return err
	}
	r.DryRun = false
	if b.store.state == driver.StateDead {
		r.Checkpoint = &deadletter.Checkpoint{Newest: plan.Checkpoint.Newest}
	}
	report, err := d.run(ctx, queue, r)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = failure(fmt.Sprintf("interrupted after %d", report.Done), "run it again for the rest")
	}
	v := bulkView{Topic: topic, Result: d.done, Matched: plan.Done, Done: report.Done, Skipped: report.Skipped,
		Why: report.Why}
	return errors.Join(s.one(v, func() error {
		return errors.Join(s.sayf("%s %d %s of topic %s, skipped %d that were gone by then", d.done, report.Done,
			b.store.many, topic, report.Skipped), s.sayWhy(report))
	}), err)
}

// sayWhy tells people why letters were skipped.
func (s session) sayWhy(r deadletter.Report) error {
	for _, why := range slices.Sorted(maps.Keys(r.Why)) {
		if err := s.sayf("  %d skipped: %s", r.Why[why], why); err != nil {
			return err
		}
	}
	return nil
}

// named does it to letters that were named, and prints what became of each.
func (b bulk) named(ctx context.Context, s session, topic string, names []string, d deed) error {
	found, views, err := selected(ctx, s, topic, b.group, names, b.store.state)
	if err != nil {
		return err
	}
	queue, err := s.queue()
	if err != nil {
		return err
	}
	targets := make([]driver.Target, len(found))
	place := map[driver.Ref]int{}
	errs := make([]error, len(found))
	r := d.replay
	for i, l := range found {
		targets[i] = l.targetIn(views[i])
		place[views[i].Ref] = i
		r.Only = append(r.Only, deadletter.Letter{Entry: views[i], From: topic}.Target())
	}
	if d.remove {
		if err := s.confirm(ctx, b.yes, fmt.Sprintf("remove from topic %s: %s", topic, joinNames(names)), ""); err != nil {
			return err
		}
	}
	r.State = b.store.state
	r.Each = func(o deadletter.LetterReport) { errs[place[o.Ref]] = o.Why }
	if _, err = d.run(ctx, queue, r); err != nil {
		return err
	}
	return s.outcomes(d.done, targets, names, errs)
}
