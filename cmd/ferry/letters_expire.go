package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/operation/kinds"
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
		Long: "Removes the oldest " + st.many + " of each topic and group, until what is left is within the limits you " +
			"give. Nothing\nexpires by itself. It asks first, or takes --yes."}
	r := newRemote(p, c)
	var limits deadletter.Retention
	var filter letterFilter
	var group string
	var yes, dryRun, background bool
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
	dryRunFlag(c.Flags(), &dryRun)
	c.Flags().BoolVar(&background, "background", false, "leave it to 'ferry operation run' or a worker of your program")
	onlyOnCommandLine(c.Flags(), "max-age", "max-count", "max-bytes", "background")
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
		return r.with(c.Context(), func(s session) error {
			if background && !dryRun {
				a := kinds.Expire{Letters: bulk{store: st, group: group, filter: filter}.letters(sel.Topic),
					MaxAge: jsontime.Duration(limits.MaxAge), MaxCount: limits.MaxCount, MaxBytes: limits.MaxBytes}
				return s.background(c.Context(), a.Request(), yes, fmt.Sprintf("remove the oldest %%d %s of %s", st.many,
					of(sel.Topic)))
			}
			return s.expire(c.Context(), sel, limits, dryRun, yes, st)
		})
	}
	return c
}

func (s session) expire(ctx context.Context, sel deadletter.Selection, limits deadletter.Retention, dryRun, yes bool,
	st store) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	if sel.Topic != "" {
		if _, err := s.driver.Stats(ctx, sel.Topic); err != nil {
			return err
		}
	}
	if dryRun {
		e, err := queue.CountExpired(ctx, sel, limits)
		if err != nil {
			return err
		}
		return s.one(expiryView{e.ByAge, e.ByCount, e.ByBytes}, func() error {
			return s.sayf("would remove %d %s of %s: %d by age, %d by count, %d by bytes", e.Total(), st.many, of(sel.Topic),
				e.ByAge, e.ByCount, e.ByBytes)
		})
	}
	if err := s.confirm(ctx, yes, fmt.Sprintf("remove the oldest %s of %s for good", st.many, of(sel.Topic)),
		""); err != nil {
		return err
	}
	e, err := queue.Expire(ctx, sel, limits)
	if err != nil {
		return err
	}
	return s.one(expiryView{e.ByAge, e.ByCount, e.ByBytes}, func() error {
		return s.sayf("removed %d %s of %s: %d by age, %d by count, %d by bytes", e.Total(), st.many, of(sel.Topic), e.ByAge,
			e.ByCount, e.ByBytes)
	})
}
