package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// expiryView is what an expiry deleted.
type expiryView struct {
	ByAge   int `json:"by_age"`
	ByCount int `json:"by_count"`
	ByBytes int `json:"by_bytes"`
}

func newLettersExpire(p process, st store) *cobra.Command {
	c := &cobra.Command{Use: "expire [TOPIC]", Short: "Remove the oldest " + st.many + " beyond a limit",
		Example: fmt.Sprintf("  ferry %s expire orders --max-count 100000 --yes", st.noun),
		Long:    "Removes the oldest " + st.many + " of each topic and group, until what is left is within the limits you give. Nothing\nexpires by itself. It asks first, or takes --yes."}
	r := newRemote(p, c)
	var limits deadletter.Retention
	var filter letterFilter
	var group string
	var yes bool
	happened := "was found"
	if st.state == driver.StateDead {
		groupFlag(c.Flags(), &group, "only this group (default: every group)")
		happened = "died"
	}
	c.Flags().DurationVar(&limits.MaxAge, "max-age", 0, "remove what "+happened+" longer ago, 720h for example")
	filter.flags(c.Flags(), st)
	c.Flags().Int64Var(&limits.MaxCount, "max-count", 0, "keep at most this many")
	c.Flags().Int64Var(&limits.MaxBytes, "max-bytes", 0, "keep at most this many bytes")
	yesFlag(c.Flags(), &yes)
	onlyOnCommandLine(c.Flags(), "max-age", "max-count", "max-bytes")
	c.RunE = func(c *cobra.Command, args []string) error {
		if limits == (deadletter.Retention{}) {
			return usage("no limit is given", "use --max-age, --max-count or --max-bytes")
		}
		where, err := filter.compile()
		if err != nil {
			return err
		}
		sel := deadletter.Selection{Group: group, State: st.state, Where: where}
		if len(args) > 0 {
			sel.Topic = args[0]
		}
		return r.with(c.Context(), func(s session) error { return s.expire(c.Context(), sel, limits, yes, st) })
	}
	return c
}

func (s session) expire(ctx context.Context, sel deadletter.Selection, limits deadletter.Retention, yes bool, st store) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	if sel.Topic != "" {
		if _, err := s.driver.Stats(ctx, sel.Topic); err != nil {
			return err
		}
	}
	if err := s.confirm(ctx, yes, fmt.Sprintf("remove the oldest %s of %s for good", st.many, of(sel.Topic)), ""); err != nil {
		return err
	}
	e, err := queue.Expire(ctx, sel, limits)
	if err != nil {
		return err
	}
	return s.one(expiryView{e.ByAge, e.ByCount, e.ByBytes}, func() error {
		return s.sayf("removed %d %s of %s: %d by age, %d by count, %d by bytes", e.Total(), st.many, of(sel.Topic), e.ByAge, e.ByCount, e.ByBytes)
	})
}
