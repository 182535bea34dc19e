package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/jsontime"
)

var keyColumns = []column[guard.Status]{
	{title: "limit", cell: func(s guard.Status) any { return s.Limit }},
	{title: "key", width: 40, cell: func(s guard.Status) any { return s.Key }},
	{title: "blocked until", cell: func(s guard.Status) any { return blockText(s.Block) }},
	{title: "by", width: 20, cell: func(s guard.Status) any { return s.Actor }},
	{title: "reason", width: 40, cell: func(s guard.Status) any { return s.Reason }},
}

var auditColumns = []column[guard.Change]{
	{title: "at", cell: func(c guard.Change) any { return instant(c.At) }},
	{title: "by", width: 20, cell: func(c guard.Change) any { return c.Actor }},
	{title: "change", cell: func(c guard.Change) any { return c.Action }},
	{title: "limit", cell: func(c guard.Change) any { return c.Limit }},
	{title: "key", width: 32, cell: func(c guard.Change) any { return cmp.Or(c.Key, c.Group) }},
	{title: "for", cell: func(c guard.Change) any { return ago(c.For) }},
	{title: "reason", width: 40, cell: func(c guard.Change) any { return c.Reason }},
}

func instant(t time.Time) string { return jsontime.Time{Time: t}.String() }

func blockText(b *guard.Block) string {
	switch {
	case b == nil:
		return ""
	case b.Until.IsZero():
		return "for good"
	}
	return instant(b.Until)
}

// listKeys prints all keys of a kind, page by page.
func (d *guardCommand) listKeys(ctx context.Context, kind guard.Kind, args []string, empty string) error {
	q := guard.Query{Kind: kind, Max: 500}
	if len(args) > 0 {
		q.Limit = args[0]
	}
	return d.with(ctx, func(a *guard.Admin) error {
		l := newListing(d.remote, keyColumns)
		for {
			page, err := a.List(ctx, q)
			if err != nil {
				return err
			}
			for _, s := range page.Keys {
				if err := l.add(s); err != nil {
					return err
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return l.end(empty)
			}
		}
	})
}

func (d *guardCommand) showStatus(s guard.Status) error {
	state := "free"
	switch {
	case s.Whitelisted:
		state = "whitelisted"
	case s.Block != nil:
		state = "blocked " + blockWhen(s.Block)
	}
	if err := d.sayf("%s  %s", s.Key, state); err != nil {
		return err
	}
	fields := []field{{"limit", s.Limit}, {"rule", s.Rule.String()}}
	if s.Override != nil {
		fields = append(fields, field{"override", fmt.Sprintf("%v until %s", s.Override.Rule, instant(s.Override.Until))})
	}
	fields = append(fields, field{"used", strconv.Itoa(s.Used)},
		field{"violations", fmt.Sprintf("%d in a row", s.Violations)},
		field{"penalties", fmt.Sprintf("%d lately", s.Level)}, field{"by", s.Actor}, field{"reason", s.Reason})
	return d.fields(fields...)
}

func blockWhen(b *guard.Block) string {
	if b.Until.IsZero() {
		return "for good"
	}
	return "until " + instant(b.Until)
}

// verdictView is the JSON form of an answer.
type verdictView struct {
	Passes  bool   `json:"passes"`
	Blocked bool   `json:"blocked"`
	After   string `json:"after,omitempty"`
}

func (d *guardCommand) showVerdict(v guard.Verdict) error {
	view := verdictView{Passes: v.Admitted, Blocked: v.Blocked}
	text := "it would pass"
	if !v.Admitted {
		why := "over its limit"
		if v.Blocked {
			why = "blocked"
		}
		view.After = v.After.String()
		if v.After == guard.Forever {
			view.After = "never"
			text = fmt.Sprintf("it would not pass: %s for good", why)
		} else {
			text = fmt.Sprintf("it would not pass: %s, and free after %s", why, shortly(v.After))
		}
	}
	if err := d.one(view, func() error { return d.sayf("%s", text) }); err != nil || v.Admitted {
		return err
	}
	return failure("a message of this key would be refused", "see 'ferry limit show' for why; 'unblock' and 'override' "+
		"change it")
}
