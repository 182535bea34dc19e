package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const rangeLong = `Lists what is in one partition of a topic, oldest first, whatever became of it: from --from on, and
before --to.

Where there is more than --limit, standard error says with which --from to go on.`

func newMsgRange(p process) *cobra.Command {
	c := &cobra.Command{Use: "range TOPIC", Short: "List what is in a partition of a log, settled or not", Long: rangeLong,
		Example: "  ferry msg range orders\n  ferry msg range orders --partition 3 --from 2026-01-31T15:00:00Z --to " +
			"2026-01-31T16:00:00Z --output ndjson"}
	r := newRemote(p, c)
	var from, to string
	var q driver.RangeQuery
	c.Flags().Int32Var(&q.Partition, "partition", 0, "which partition")
	c.Flags().StringVar(&from, "from", "begin", "begin, a time, or a ref")
	c.Flags().StringVar(&to, "to", "end", "end, a time, or a ref; what is there is not listed")
	c.Flags().IntVar(&q.Limit, "limit", 100, "how many at most, up to 1000")
	onlyOnCommandLine(c.Flags(), "partition", "from", "to", "limit")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Limit < 1 || q.Limit > 1000 {
			return usage(fmt.Sprintf("--limit %d is out of range", q.Limit), "use 1 to 1000")
		}
		if q.From, q.To, err = parseRange(from, to); err != nil {
			return err
		}
		q.Topic = args[0]
		return r.with(c.Context(), func(s session) error { return s.listRange(c.Context(), q) })
	}
	return c
}

var rangeColumns = []column[entryView]{
	{title: "ref", cell: func(v entryView) any { return v.Ref }},
	{title: "published", cell: func(v entryView) any { return clock(v.PublishedAt) }},
	{title: "id", width: 36, cell: func(v entryView) any { return v.ID }},
	{title: "key", width: 20, cell: func(v entryView) any { return v.Key }},
	{title: "body", width: 60, cell: func(v entryView) any { return v.preview() }},
}

func (s session) listRange(ctx context.Context, q driver.RangeQuery) error {
	l, err := s.log(ctx, q.Topic)
	if err != nil {
		return err
	}
	page, err := l.Range(ctx, q)
	if err != nil {
		return err
	}
	rows := make([]entryView, len(page.Entries))
	for i, e := range page.Entries {
		plain, err := s.broker.UndoEntry(ctx, e)
		s.faults.add(err)
		rows[i] = viewEntry(q.Topic, plain)
	}
	if err := list(s.remote, rangeColumns, rows, fmt.Sprintf("Nothing is in that range of partition %d of topic %s.",
		q.Partition, q.Topic)); err != nil {
		return err
	}
	if !page.Next.IsZero() {
		_, _ = fmt.Fprintf(s.err, "there is more: go on with --from %s\n", page.Next)
	}
	return nil
}
