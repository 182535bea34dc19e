package main

import (
	"context"

	"github.com/spf13/cobra"
)

const trimLong = `Applies the retention of a topic now, see 'ferry topic retain'. Where it may drop what groups have
not settled, it asks for the name of the topic, or takes --yes.`

func newTopicTrim(p process) *cobra.Command {
	c := &cobra.Command{Use: "trim TOPIC", Short: "Remove what is beyond the retention of a topic", Long: trimLong,
		Example: "  ferry topic trim orders"}
	r := newRemote(p, c)
	var yes bool
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error { return s.trim(c.Context(), args[0], yes) })
	}
	return c
}

// trimmed is what a trim did.
type trimmed struct {
	Topic   string `json:"topic"`
	Removed int    `json:"removed"`
	Dropped int    `json:"dropped"`
	Waits   bool   `json:"waits"`
}

func (s session) trim(ctx context.Context, topic string, yes bool) error {
	l, err := s.log(ctx, topic)
	if err != nil {
		return err
	}
	now, err := l.Retention(ctx, topic)
	if err != nil {
		return err
	}
	if now.DropUnsettled {
		if err := s.confirm(ctx, yes, "trim topic "+topic+", also what its groups have not settled", topic); err != nil {
			return err
		}
	}
	report, err := l.Trim(ctx, topic)
	if err != nil {
		return err
	}
	v := trimmed{Topic: topic, Removed: report.Removed, Dropped: report.Dropped, Waits: report.Waits}
	return s.one(v, func() error {
		if err := s.sayf("trimmed topic %s: %d entries removed, of them %d that were not settled", topic, v.Removed,
			v.Dropped); err != nil || !v.Waits {
			return err
		}
		return s.sayf("more is beyond the retention, and waits for what is not settled or in flight; 'ferry group ls %s "+
			"--partitions' says whose", topic)
	})
}
