package main

import (
	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const parseErrorsExample = `  ferry parse-errors ls
  ferry parse-errors show orders 0-42
  ferry parse-errors show orders 0-42 --raw > found.bin
  ferry parse-errors requeue orders 0-42 --file mended.json --key alice
  ferry parse-errors rm orders 0-42`

func newParseErrors(p process) *cobra.Command {
	return newNoun("parse-errors", "List, show, mend and remove what could not be decoded", parseErrorsExample,
		newParseErrorsList(p), newParseErrorsShow(p), newParseErrorsRequeue(p), newParseErrorsRemove(p))
}

func newParseErrorsList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls [TOPIC]", Short: "List what could not be decoded, of a topic or of all", Example: "  ferry parse-errors ls\n  ferry parse-errors ls orders --output ndjson"}
	r := newRemote(p, c)
	sc := scope{state: driver.StateInvalid}
	sc.pageFlags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			sc.topic = args[0]
		}
		if err := sc.check(); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			return s.listEntries(c.Context(), sc, invalidColumns, nil, "No parse errors: everything that was read could be decoded.")
		})
	}
	return c
}

var invalidColumns = []column[entryView]{
	{title: "topic", width: 30, cell: func(v entryView) any { return v.Topic }},
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "bytes", number: true, cell: func(v entryView) any { return len(v.RawBase64) }},
	{title: "problem", width: 60, cell: func(v entryView) any { return v.Problem }},
	{title: "found", width: 40, cell: func(v entryView) any { return string(v.RawBase64) }},
}

func newParseErrorsShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show TOPIC MESSAGE", Short: "Show why something could not be decoded, or its bytes", Example: "  ferry parse-errors show orders 0-42\n  ferry parse-errors show orders 0-42 --raw > found.bin"}
	r := newRemote(p, c)
	var raw bool
	rawFlag(c.Flags(), &raw)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			_, views, err := selected(c.Context(), s, args[0], "", args[1:], driver.StateInvalid)
			if err != nil {
				return err
			}
			return r.showOne(args[0], views[0], raw)
		})
	}
	return c
}

func newParseErrorsRequeue(p process) *cobra.Command {
	c := &cobra.Command{Use: "requeue TOPIC MESSAGE", Short: "Publish what could not be decoded, with the content you give", Example: "  ferry parse-errors requeue orders 0-42 --body '{\"id\":42}'\n  ferry parse-errors requeue orders 0-42 --file mended.json --key alice",
		Long: "Replaces what could not be decoded by a message with the body, key and headers you give, in one step.\n'ferry parse-errors show --raw' gives you the bytes to start from."}
	r := newRemote(p, c)
	var m moveFlags
	m.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if !m.body.given(c.Flags()) {
			return usage("the mended body is missing", "give it with --body or --file; 'ferry parse-errors show --raw' writes the bytes as they were found")
		}
		if err := m.check(c.Flags(), 1); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			found, views, err := selected(c.Context(), s, args[0], "", args[1:], driver.StateInvalid)
			if err != nil {
				return err
			}
			return m.move(c.Context(), s, c.Flags(), "requeued", found, views)
		})
	}
	return c
}

func newParseErrorsRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC MESSAGE...", Short: "Remove what could not be decoded", Long: "Removes what could not be decoded, for good. It asks first, or takes --yes.", Example: "  ferry parse-errors rm orders 0-42\n  ferry parse-errors rm orders 0-42 0-43 --yes"}
	r := newRemote(p, c)
	var yes bool
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			found, _, err := selected(c.Context(), s, args[0], "", args[1:], driver.StateInvalid)
			if err != nil {
				return err
			}
			return s.remove(c.Context(), args[0], found, yes)
		})
	}
	return c
}
