package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

const dlqExample = `  ferry dlq ls --group-by error                        what failed for good, and why
  ferry dlq ls orders --reason timeout
  ferry dlq show orders 0-42                           everything about one of them
  ferry dlq retry orders 0-42                          once more
  ferry dlq retry orders 0-42 --body '{"id":42}'       once more, mended
  ferry dlq retry orders --all --error 'timeout to billing' --dry-run
  ferry dlq rm orders --all --reason expired`

func newDLQ(p process) *cobra.Command {
	return newNoun("dlq", "List, show, retry and remove dead letters", dlqExample, newDLQList(p), newDLQShow(p), newDLQRetry(p), newDLQRemove(p))
}

// deadFilter selects dead letters by why they died.
type deadFilter struct{ reason, text string }

func (d *deadFilter) flags(f *pflag.FlagSet) {
	f.StringVar(&d.reason, "reason", "", "only those that died for this reason, timeout or max_attempts for example")
	f.StringVar(&d.text, "error", "", "only those whose error contains this text")
	onlyOnCommandLine(f, "reason", "error")
}

func (d deadFilter) keep(e driver.Entry) bool {
	return e.Dead != nil && (d.reason == "" || string(e.Dead.Reason) == d.reason) && strings.Contains(e.Dead.Error, d.text)
}

func newDLQList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls [TOPIC]", Short: "List dead letters: of a topic or of all, of a group or of all", Example: "  ferry dlq ls\n  ferry dlq ls orders --group billing --limit 0 --output ndjson\n  ferry dlq ls --group-by error"}
	r := newRemote(p, c)
	sc := scope{state: driver.StateDead}
	var filter deadFilter
	var groupBy string
	sc.flags(c.Flags())
	filter.flags(c.Flags())
	c.Flags().StringVar(&groupBy, "group-by", "", "error: count those with like errors together")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			sc.topic = args[0]
		}
		if groupBy != "" && groupBy != "error" {
			return usage(fmt.Sprintf("--group-by %q does not exist", printable(groupBy)), "use error")
		}
		if err := sc.check(); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if groupBy != "" {
				return s.listErrors(c.Context(), sc, filter)
			}
			return s.listEntries(c.Context(), sc, deadColumns, filter.keep, noDead)
		})
	}
	return c
}

const noDead = "No dead letters. Messages land here when their handler gave up."

var deadColumns = []column[entryView]{
	{title: "topic", width: 30, cell: func(v entryView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v entryView) any { return v.Group }},
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "id", width: 36, cell: func(v entryView) any { return v.ID }},
	{title: "key", width: 20, cell: func(v entryView) any { return v.Key }},
	{title: "died", cell: func(v entryView) any { return clock(v.Dead.DiedAt) }},
	{title: "reason", width: 16, cell: func(v entryView) any { return v.Dead.Reason }},
	{title: "error", width: 60, cell: func(v entryView) any { return v.Dead.Error }},
}

func newDLQShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show TOPIC MESSAGE", Short: "Show a dead letter: its message, error, stack and history", Long: "Shows everything about a dead letter.\n\n" + targetHelp,
		Example: "  ferry dlq show orders 0-42\n  ferry dlq show orders 0-42 --output json | jq .dead"}
	r := newRemote(p, c)
	var group string
	var raw bool
	groupFlag(c.Flags(), &group, "the group, where it died in several")
	rawFlag(c.Flags(), &raw)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkGroup(group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			_, views, err := selected(c.Context(), s, args[0], group, args[1:], driver.StateDead)
			if err != nil {
				return err
			}
			return r.showOne(args[0], views[0], raw)
		})
	}
	return c
}

func newDLQRetry(p process) *cobra.Command {
	c := &cobra.Command{Use: "retry TOPIC [MESSAGE...]", Short: "Deliver dead letters again, one by one or all that match", Example: dlqExample,
		Long: "Delivers dead letters once more, their attempts counted from the start. The content of a single one can\nbe changed on the way. With --all it takes all that match, counts them first, and asks, or takes --yes.\n\n" + targetHelp}
	r := newRemote(p, c)
	var m moveFlags
	var b bulk
	m.add(c.Flags())
	b.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := b.check(args[1:]); err != nil {
			return err
		}
		if err := m.check(c.Flags(), len(args)-1); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if b.all {
				return s.retryAll(c.Context(), args[0], b, m)
			}
			found, views, err := selected(c.Context(), s, args[0], b.group, args[1:], driver.StateDead)
			if err != nil {
				return err
			}
			return m.move(c.Context(), s, c.Flags(), "retried", found, views)
		})
	}
	return c
}

func (s session) retryAll(ctx context.Context, topic string, b bulk, m moveFlags) error {
	return b.run(ctx, s, topic, "retry", "retried", func(targets []driver.Target) []error {
		moves := make([]driver.Move, len(targets))
		for i, t := range targets {
			moves[i] = driver.Move{Target: t, After: m.delay}
		}
		return s.driver.Move(ctx, moves)
	})
}

func newDLQRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC [MESSAGE...]", Short: "Remove dead letters, one by one or all that match", Example: "  ferry dlq rm orders 0-42\n  ferry dlq rm orders --all --reason expired --dry-run\n  ferry dlq rm orders --all --reason expired --yes",
		Long: "Removes dead letters for good. With --all it takes all that match and counts them first. It asks, or\ntakes --yes.\n\n" + targetHelp}
	r := newRemote(p, c)
	var b bulk
	b.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := b.check(args[1:]); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if b.all {
				return b.run(c.Context(), s, args[0], "remove", "removed", func(ts []driver.Target) []error { return s.driver.Delete(c.Context(), ts) })
			}
			found, views, err := selected(c.Context(), s, args[0], b.group, args[1:], driver.StateDead)
			if err != nil {
				return err
			}
			for i := range found {
				found[i].target = found[i].targetIn(views[i])
			}
			return s.remove(c.Context(), args[0], found, b.yes)
		})
	}
	return c
}
