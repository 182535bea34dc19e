package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const actionsLong = `What operators did: who, what, on which topic, how many messages, and what was refused. Each
action holds the hash of the one before it; 'verify' finds what was changed or removed. Actions are kept for 30 days.`

func newActions(p process) *cobra.Command {
	c := newNoun("actions", "See what operators did, and verify it", "  ferry actions ls\n  ferry actions verify",
		newActionsList(p), newActionsVerify(p))
	c.Long = actionsLong
	return c
}

// actionView is an action in JSON. It is stable.
type actionView struct {
	Sequence  uint64         `json:"sequence"`
	At        *jsontime.Time `json:"at"`
	Who       string         `json:"who"`
	What      string         `json:"what"`
	Topic     string         `json:"topic,omitempty"`
	Group     string         `json:"group,omitempty"`
	Filter    string         `json:"filter,omitempty"`
	Detail    string         `json:"detail,omitempty"`
	Count     int64          `json:"count,omitempty"`
	Outcome   string         `json:"outcome"`
	RequestID string         `json:"request_id,omitempty"`
	Hash      string         `json:"hash"`
}

func viewAction(r auth.Recorded) actionView {
	return actionView{r.Sequence, jsontime.At(r.At), r.Who, r.What, r.Topic, r.Group, r.Filter, r.Detail, r.Count,
		r.Outcome,
		r.RequestID, r.Hash}
}

var actionColumns = []column[actionView]{
	{title: "at", cell: func(v actionView) any { return textOf(v.At) }},
	{title: "who", width: 24, cell: func(v actionView) any { return v.Who }},
	{title: "what", width: 24, cell: func(v actionView) any { return v.What }},
	{title: "topic", width: 24, cell: func(v actionView) any { return v.Topic }},
	{title: "detail", width: 40, cell: func(v actionView) any { return v.Detail }},
	{title: "count", number: true, cell: func(v actionView) any { return v.Count }},
	{title: "outcome", cell: func(v actionView) any { return v.Outcome }},
}

func newActionsList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List what operators did, the newest first",
		Example: "  ferry actions ls --limit 20\n  ferry actions ls --output ndjson"}
	r := newRemote(p, c)
	var limit int
	c.Flags().IntVar(&limit, "limit", 100, "how many at most, 1 to 1000")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if limit < 1 || limit > 1000 {
			return usage("--limit is out of range", "use 1 to 1000")
		}
		return r.with(c.Context(), func(s session) error {
			page, err := auth.NewActions(s.broker).List(c.Context(), auth.ActionQuery{Limit: limit})
			if err != nil {
				return err
			}
			rows := make([]actionView, len(page.Actions))
			for i, a := range page.Actions {
				rows[i] = viewAction(a)
			}
			return list(s.remote, actionColumns, rows, "Nobody has done anything yet.")
		})
	}
	return c
}

func newActionsVerify(p process) *cobra.Command {
	c := &cobra.Command{Use: "verify", Short: "Find actions that were changed or removed",
		Long: `Walks over the chain of actions. Whoever may write to the broker can still make a whole new chain, or remove
the newest actions: keep the hash that it prints somewhere else, or the log of the servers, to compare.`,
		Example: "  ferry actions verify"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error { return s.verifyActions(c.Context()) })
	}
	return c
}

func (s session) verifyActions(ctx context.Context) error {
	v, err := auth.NewActions(s.broker).Verify(ctx)
	if err != nil {
		return err
	}
	if err := s.one(v, func() error {
		for _, problem := range v.Problems {
			s.notef("%s", problem)
		}
		return s.sayf("%d actions, the newest is %d with hash %s", v.Checked, v.Newest, v.Head)
	}); err != nil {
		return err
	}
	if len(v.Problems) > 0 {
		return failure("the list of actions was tampered with, or is damaged",
			"compare it with the log of the servers, which has the hash of each action")
	}
	return nil
}
