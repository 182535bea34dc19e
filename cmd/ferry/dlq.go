package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const dlqExample = `  ferry dlq ls --group-by error                        what failed for good, and why
  ferry dlq ls orders --where 'reason == "timeout" and attempts > 3'
  ferry dlq show orders 0-42                           everything about one of them
  ferry dlq retry orders 0-42                          once more
  ferry dlq edit orders 0-42 --body '{"id":42}'        once more, mended
  ferry dlq retry orders --all --error 'timeout to billing' --dry-run
  ferry dlq retry orders --all --where 'key startsWith "user-"' --rate 100 --yes
  ferry dlq retry orders --all --rate 100 --background --yes
  ferry operation ls                                   how far that is, wherever it runs
  ferry dlq move orders --all --to orders.later --yes
  ferry dlq rm orders --all --reason expired
  ferry dlq export orders > saved.ndjson`

func newDLQ(p process) *cobra.Command {
	return newNoun("dlq", "List, show, retry, edit, move, export and remove dead letters", dlqExample, newDLQList(p),
		newDLQShow(p), newDLQRetry(p), newDLQEdit(p),
		newLettersMove(p, deadStore), newLettersRemove(p, deadStore), newLettersExport(p, deadStore),
		newLettersImport(p, deadStore), newLettersExpire(p, deadStore), newJobs(p))
}

func newDLQList(p process) *cobra.Command {
	return newLettersList(p, deadStore, deadColumns, "  ferry dlq ls\n  ferry dlq ls orders --group billing --limit 0 "+
		"--output ndjson\n  ferry dlq ls --where 'age > duration(\"24h\") and json.user.id == 7'\n  ferry dlq ls "+
		"--group-by error")
}

var deadColumns = []column[entryView]{
	{title: "topic", width: 30, cell: func(v entryView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v entryView) any { return v.Group }},
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "id", width: 36, cell: func(v entryView) any { return v.ID }},
	{title: "key", width: 20, cell: func(v entryView) any { return v.Key }},
	{title: "died", cell: func(v entryView) any { return clock(v.Dead.DiedAt) }},
	{title: "reason", width: 16, cell: func(v entryView) any { return v.Dead.Reason }},
	{title: "next retry", cell: func(v entryView) any { return nextRetry(v.Dead) }},
	{title: "prio", number: true, cell: func(v entryView) any { return v.Dead.RecoveryPriority }},
	{title: "error", width: 60, cell: func(v entryView) any { return v.Dead.Error }},
}

func newDLQShow(p process) *cobra.Command {
	return newLettersShow(p, deadStore, "Show a dead letter: its message, error, stack and history",
		"  ferry dlq show orders 0-42\n  ferry dlq show orders 0-42 --output json | jq .dead")
}

func newDLQRetry(p process) *cobra.Command {
	c := &cobra.Command{Use: "retry TOPIC [MESSAGE...]", Aliases: []string{"replay"},
		Short: "Deliver dead letters again, one by one or all that match", Example: dlqExample,
		Long: `Delivers dead letters once more, their attempts counted from the start, those of one key in the order in
which they were published. The content of a single one can be changed on the way, and --patch changes
many. With --all it takes all that match, counts them first, and asks, or takes --yes.

` + whereHelp + "\n\n" + targetHelp}
	return letterCommand(p, c, deadStore, "retry", "retried", func(replayFlags) error { return nil })
}

// newDLQEdit is retry of a single one that must be changed.
func newDLQEdit(p process) *cobra.Command {
	c := &cobra.Command{Use: "edit TOPIC MESSAGE", Short: "Change a dead letter and deliver it again, in one step",
		Example: "  ferry dlq edit orders 0-42 --body '{\"id\":42}'\n  ferry dlq edit orders 0-42 --patch " +
			"'[{\"op\":\"replace\",\"path\":\"/user/id\",\"value\":7}]'\n  ferry dlq show orders 0-42 --raw > body && vi body " +
			"&& ferry dlq edit orders 0-42 --file body",
		Long: "Replaces the body, patches it, or changes key, headers and priority, and delivers the message again. " +
			"What is not\nnamed stays as it is.\n\n" + targetHelp}
	r := newRemote(p, c)
	var f replayFlags
	b := bulk{store: deadStore}
	f.move.add(c.Flags())
	c.Flags().StringVar(&f.patch, "patch", "", "a JSON patch (RFC 6902) for the body, or @FILE with one")
	groupFlag(c.Flags(), &b.group, "the group, where it died in several")
	onlyOnCommandLine(c.Flags(), "patch")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := f.checkEdit(c.Flags()); err != nil {
			return err
		}
		if err := checkGroup(b.group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			replay, err := f.replay(c.Context(), s, c.Flags())
			if err != nil {
				return err
			}
			return b.named(c.Context(), s, args[0], args[1:], deed{verb: "edit", done: "edited", replay: replay})
		})
	}
	return c
}

func (r replayFlags) checkEdit(f *pflag.FlagSet) error {
	if !r.move.editing(f) && r.patch == "" {
		return usage("nothing is changed", "give --body, --file, --patch, --key, --header, --priority or --content-type")
	}
	return r.check(f, false, 1)
}
