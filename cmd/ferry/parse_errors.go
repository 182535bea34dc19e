package main

import (
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

const parseErrorsExample = `  ferry parse-errors ls
  ferry parse-errors ls --where 'body contains "order"'
  ferry parse-errors show orders 0-42
  ferry parse-errors show orders 0-42 --raw > found.bin
  ferry parse-errors requeue orders 0-42 --file mended.json --key alice
  ferry parse-errors requeue orders --all --where 'body startsWith "{"' --keep-body --dry-run
  ferry parse-errors rm orders 0-42
  ferry parse-errors export > found.ndjson`

func newParseErrors(p process) *cobra.Command {
	return newNoun("parse-errors", "List, show, requeue, move, export and remove what could not be decoded",
		parseErrorsExample,
		newLettersList(p, badStore, invalidColumns, "  ferry parse-errors ls\n  ferry parse-errors ls orders --output "+
			"ndjson\n  ferry parse-errors ls --group-by error"),
		newLettersShow(p, badStore, "Show why something could not be decoded, or its bytes",
			"  ferry parse-errors show orders 0-42\n  ferry parse-errors show orders 0-42 --raw > found.bin"),
		newParseErrorsRequeue(p), newLettersMove(p, badStore), newLettersRemove(p, badStore), newLettersExport(p, badStore),
		newLettersImport(p, badStore), newLettersExpire(p, badStore))
}

var invalidColumns = []column[entryView]{
	{title: "topic", width: 30, cell: func(v entryView) any { return v.Topic }},
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "found", cell: func(v entryView) any { return clock(v.FoundAt) }},
	{title: "bytes", number: true, cell: func(v entryView) any { return len(v.RawBase64) }},
	{title: "problem", width: 60, cell: func(v entryView) any { return v.Problem }},
	{title: "raw", width: 40, cell: func(v entryView) any { return string(v.RawBase64) }},
}

func newParseErrorsRequeue(p process) *cobra.Command {
	c := &cobra.Command{Use: "requeue TOPIC [MESSAGE...]", Short: "Publish what could not be decoded, with the content " +
		"you give",
		Example: "  ferry parse-errors requeue orders 0-42 --body '{\"id\":42}'\n  ferry parse-errors requeue orders 0-42 " +
			"--file mended.json --key alice\n  ferry parse-errors requeue orders --all --keep-body --dry-run",
		Long: `Replaces what could not be decoded by a message with the body, key and headers you give, in one step.
'ferry parse-errors show --raw' gives you the bytes to start from. --keep-body takes them as they are, for
bytes that another program put there without an envelope.

` + whereHelp}
	r := newRemote(p, c)
	var f replayFlags
	var keep bool
	b := bulk{store: badStore}
	f.add(c.Flags(), badStore)
	b.flags(c.Flags())
	c.Flags().BoolVar(&keep, "keep-body", false, "the bytes that were found are the body")
	onlyOnCommandLine(c.Flags(), "keep-body")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !keep && f.patch == "" && !f.move.body.given(c.Flags()) {
			return usage("the mended body is missing", "give it with --body, --file or --patch, or take the bytes with "+
				"--keep-body; 'ferry parse-errors show --raw' writes them")
		}
		if err := b.check(args[1:]); err != nil {
			return err
		}
		if err := f.check(c.Flags(), b.all, len(args)-1); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			replay, err := f.replay(c.Context(), s, c.Flags())
			if err != nil {
				return err
			}
			if replay.Edit == nil {
				replay.Edit = typed
			}
			d := deed{verb: "requeue", done: "requeued", replay: replay}
			if b.all {
				return f.replayAll(c.Context(), s, args[0], b, d)
			}
			return b.named(c.Context(), s, args[0], args[1:], d)
		})
	}
	return c
}

// typed keeps the bytes that were found, and says what they look like.
func typed(_ deadletter.Letter, m *driver.Message) error {
	m.ContentType = typeOf(m.Body)
	return nil
}
