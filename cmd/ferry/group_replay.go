package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const replayLong = `Delivers messages again that a group has settled and the topic still keeps: those from --from on,
and before --to. Nothing is skipped, and other groups do not notice.

It says first what it would do, and asks; --yes goes on at once, and --dry-run stops there.`

func newGroupReplay(p process) *cobra.Command {
	c := &cobra.Command{Use: "replay TOPIC GROUP", Short: "Deliver a range of settled messages again to a group",
		Long: replayLong,
		Example: "  ferry group replay orders audit --dry-run\n  ferry group replay orders audit --from " +
			"2026-01-31T15:00:00Z --to 2026-01-31T16:00:00Z"}
	r := newRemote(p, c)
	var from, to string
	var o driver.ReplayOptions
	var yes bool
	c.Flags().StringVar(&from, "from", "begin", "begin, a time, or a ref")
	c.Flags().StringVar(&to, "to", "end", "end, a time, or a ref; what is there is not replayed")
	dryRunFlag(c.Flags(), &o.DryRun)
	yesFlag(c.Flags(), &yes)
	onlyOnCommandLine(c.Flags(), "from", "to")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if o.From, o.To, err = parseRange(from, to); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return s.replayGroup(c.Context(), args[0], args[1], o, yes) })
	}
	return c
}

func (s session) replayGroup(ctx context.Context, topic, group string, o driver.ReplayOptions, yes bool) error {
	l, err := s.log(ctx, topic)
	if err != nil {
		return err
	}
	dry := o
	dry.DryRun = true
	report, err := l.Replay(ctx, topic, group, dry)
	if err != nil {
		return err
	}
	v := rewound{Topic: topic, Group: group, Result: "replayed", DryRun: true, Replayed: report.Replayed}
	if o.DryRun {
		return v.say(s.remote)
	}
	what := fmt.Sprintf("replay %d messages to group %s of topic %s", report.Replayed, group, topic)
	if err := s.confirm(ctx, yes, what, group); err != nil {
		return err
	}
	if report, err = l.Replay(ctx, topic, group, o); err != nil {
		return err
	}
	v.DryRun, v.Replayed = false, report.Replayed
	return v.say(s.remote)
}
