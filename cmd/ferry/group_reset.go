package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation/kinds"
)

const resetLong = `Makes a group start again from a position: what the topic keeps behind it is delivered again, and
what is ready before it is skipped. --to is begin, end, a time, or the ref of a message.

It says first what it would do, and asks; --yes goes on at once, and --dry-run stops there. While the group has
consumers it is refused, unless --force. A topic keeps settled messages for as long as its setting keep says.`

func newGroupReset(p process) *cobra.Command {
	c := &cobra.Command{Use: "reset TOPIC GROUP", Short: "Make a group start again from a position", Long: resetLong,
		Example: "  ferry group reset orders audit --to begin --dry-run\n  ferry group reset orders audit --to " +
			"2026-01-31T15:04:05Z\n  ferry group reset orders debug --to end --yes"}
	r := newRemote(p, c)
	var to string
	var o driver.ResetOptions
	var yes, background bool
	c.Flags().StringVar(&to, "to", "", "begin, end, a time, or a ref")
	c.Flags().BoolVar(&o.Force, "force", false, "also while the group has consumers")
	dryRunFlag(c.Flags(), &o.DryRun)
	yesFlag(c.Flags(), &yes)
	c.Flags().BoolVar(&background, "background", false, "leave it to 'ferry operation run' or a worker of your program")
	onlyOnCommandLine(c.Flags(), "to", "force", "background")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if to == "" {
			return usage("--to is missing", "say where the group starts again: begin, end, a time, or a ref")
		}
		if o.To, err = parsePosition("to", to); err != nil {
			return err
		}
		if background && !o.DryRun {
			a := kinds.Reset{Topic: args[0], Group: args[1], To: to, Time: o.To.Time, Force: o.Force}
			if !o.To.Time.IsZero() {
				a.To = ""
			}
			what := "deliver %d messages again to group " + args[1] + " of topic " + args[0]
			return r.with(c.Context(), func(s session) error { return s.background(c.Context(), a.Request(), yes, what) })
		}
		return r.with(c.Context(), func(s session) error { return s.resetGroup(c.Context(), args[0], args[1], o, yes) })
	}
	return c
}

// dryRunFlag adds --dry-run.
func dryRunFlag(f *pflag.FlagSet, dry *bool) {
	f.BoolVar(dry, "dry-run", false, "only say what would be done")
	onlyOnCommandLine(f, "dry-run")
}

// rewound is what a reset or a replay did, or would do.
type rewound struct {
	Topic    string `json:"topic"`
	Group    string `json:"group"`
	Result   string `json:"result"`
	DryRun   bool   `json:"dry_run"`
	Replayed int    `json:"replayed"`
	Skipped  int    `json:"skipped"`
}

func (v rewound) say(r *remote) error {
	return r.one(v, func() error {
		if v.DryRun {
			return r.sayf("would deliver %d messages again to group %s of topic %s, and skip %d", v.Replayed, v.Group, v.Topic,
				v.Skipped)
		}
		return r.sayf("%s group %s of topic %s: %d messages are delivered again, %d are skipped", v.Result, v.Group, v.Topic,
			v.Replayed, v.Skipped)
	})
}

func (s session) resetGroup(ctx context.Context, topic, group string, o driver.ResetOptions, yes bool) error {
	dry := o
	dry.DryRun = true
	report, err := s.driver.Reset(ctx, topic, group, dry)
	if err != nil {
		return err
	}
	v := rewound{Topic: topic, Group: group, Result: "reset", DryRun: true, Replayed: report.Replayed,
		Skipped: report.Skipped}
	if o.DryRun {
		return v.say(s.remote)
	}
	what := fmt.Sprintf("reset group %s of topic %s: deliver %d messages again, and skip %d", group, topic,
		report.Replayed, report.Skipped)
	if err := s.confirm(ctx, yes, what, group); err != nil {
		return err
	}
	if report, err = s.driver.Reset(ctx, topic, group, o); err != nil {
		return err
	}
	v.DryRun, v.Replayed, v.Skipped = false, report.Replayed, report.Skipped
	return v.say(s.remote)
}
