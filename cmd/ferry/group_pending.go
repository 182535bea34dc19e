package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const pendingLong = `Lists what a group has read and not settled: who has it, for how long, and how often it was
delivered.

Where there is more than --limit, standard error says with which --cursor to go on.`

func newGroupPending(p process) *cobra.Command {
	c := &cobra.Command{Use: "pending TOPIC GROUP", Short: "List what a group has read and not settled", Long: pendingLong,
		Example: "  ferry group pending orders billing\n  ferry group pending orders billing --instance host-7 --output " +
			"ndjson"}
	r := newRemote(p, c)
	var q driver.PendingQuery
	c.Flags().StringVar(&q.Instance, "instance", "", "only what this consumer has")
	c.Flags().StringVar(&q.Cursor, "cursor", "", "go on where an earlier list ended")
	c.Flags().IntVar(&q.Limit, "limit", 100, "how many at most, up to 1000")
	onlyOnCommandLine(c.Flags(), "instance", "cursor", "limit")
	c.RunE = func(c *cobra.Command, args []string) error {
		if q.Limit < 1 || q.Limit > 1000 {
			return usage(fmt.Sprintf("--limit %d is out of range", q.Limit), "use 1 to 1000")
		}
		q.Topic, q.Group = args[0], args[1]
		return r.with(c.Context(), func(s session) error { return s.listPending(c.Context(), q) })
	}
	return c
}

// pendingView is the JSON form of a pending message.
type pendingView struct {
	Ref        string            `json:"ref"`
	ID         string            `json:"id"`
	State      string            `json:"state"`
	Instance   string            `json:"instance"`
	Idle       jsontime.Duration `json:"idle"`
	Deliveries int               `json:"deliveries"`
}

var pendingColumns = []column[pendingView]{
	{title: "ref", cell: func(v pendingView) any { return v.Ref }},
	{title: "id", width: 36, cell: func(v pendingView) any { return v.ID }},
	{title: "state", cell: func(v pendingView) any { return v.State }},
	{title: "instance", width: 40, cell: func(v pendingView) any { return v.Instance }},
	{title: "idle", number: true, cell: func(v pendingView) any { return ago(v.Idle) }},
	{title: "deliveries", number: true, cell: func(v pendingView) any { return v.Deliveries }},
}

func (s session) listPending(ctx context.Context, q driver.PendingQuery) error {
	l, err := s.log(ctx, q.Topic)
	if err != nil {
		return err
	}
	page, err := l.Pending(ctx, q)
	if err != nil {
		return err
	}
	rows := make([]pendingView, len(page.Entries))
	for i, e := range page.Entries {
		rows[i] = pendingView{Ref: e.Ref.String(), ID: e.ID, State: string(e.State), Instance: e.Instance,
			Idle: jsontime.Duration(e.Idle), Deliveries: e.Deliveries}
	}
	if err := list(s.remote, pendingColumns, rows, fmt.Sprintf("Group %s of topic %s has nothing pending.", q.Group,
		q.Topic)); err != nil {
		return err
	}
	if page.Next != "" {
		_, _ = fmt.Fprintf(s.err, "there is more: go on with --cursor %s\n", page.Next)
	}
	return nil
}
