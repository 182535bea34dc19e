package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// listFlags are those of listings of letters.
type listFlags struct {
	scope   scope
	filter  letterFilter
	groupBy string
	maxScan int
}

func newLettersList(p process, st store, columns []column[entryView], example string) *cobra.Command {
	c := &cobra.Command{Use: "ls [TOPIC]", Short: "List " + st.many + ": of a topic or of all", Example: example,
		Long: "Lists " + st.many + ", oldest first, or counts those that have something in common with --group-by. Where " +
			"there is\nmore, standard error says with which --cursor to go on.\n\n" + whereHelp}
	r := newRemote(p, c)
	var l listFlags
	if st.state == driver.StateDead {
		l.scope.flags(c.Flags())
	} else {
		l.scope.pageFlags(c.Flags())
	}
	l.filter.flags(c.Flags(), st)
	c.Flags().StringVar(&l.groupBy, "group-by", "", "count them by error, reason, topic, group, key or day")
	c.Flags().IntVar(&l.maxScan, "max-scan", 0, "stop after looking at this many, and say how to go on (default: all)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			l.scope.topic = args[0]
		}
		by, where, err := l.check()
		if err != nil {
			return err
		}
		sel := deadletter.Selection{Topic: l.scope.topic, Group: l.scope.group, State: st.state, Where: where}
		return r.with(c.Context(), func(s session) error {
			if by != deadletter.ByNothing {
				return s.countLetters(c.Context(), l, sel, by, st)
			}
			return s.listLetters(c.Context(), l, sel, columns, st)
		})
	}
	return c
}

func (l listFlags) check() (by deadletter.By, where *deadletter.Filter, err error) {
	switch l.groupBy {
	case "", "reason", "topic", "group", "key", "day", "fingerprint":
		by = deadletter.By(l.groupBy)
	case "error":
		by = deadletter.ByFingerprint
	default:
		return "", nil, oneOf("group-by", l.groupBy, "error", "reason", "topic", "group", "key", "day")
	}
	if l.maxScan < 0 {
		return "", nil, usage(fmt.Sprintf("--max-scan %d is negative", l.maxScan), "leave it out to look at all")
	}
	if err := l.scope.check(); err != nil {
		return "", nil, err
	}
	where, err = l.filter.compile()
	return by, where, err
}

// listLetters prints letters page by page, until the limit or the end.
func (s session) listLetters(ctx context.Context, l listFlags, sel deadletter.Selection, columns []column[entryView],
	st store) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	out := newListing(s.remote, columns)
	q := deadletter.Query{Selection: sel, Cursor: l.scope.cursor}
	first, faulty := -1, 0
	var fault error
	for {
		if q.Limit = pageSize; l.scope.limit > 0 {
			q.Limit = min(pageSize, l.scope.limit-out.count)
		}
		if q.MaxScan = 0; l.maxScan > 0 && first >= 0 {
			q.MaxScan = l.maxScan - first
		} else if l.maxScan > 0 {
			q.MaxScan = l.maxScan
		}
		page, err := queue.Browse(ctx, q)
		if err != nil {
			_ = out.end("") // what was found before
			return err
		}
		for _, letter := range page.Letters {
			if err := out.add(viewLetter(letter)); err != nil {
				return err
			}
		}
		if faulty += page.Faulty; fault == nil {
			fault = page.Fault
		}
		first = page.Scanned
		q.Cursor = page.Next
		full := l.scope.limit > 0 && out.count >= l.scope.limit || l.maxScan > 0 && page.Scanned >= l.maxScan
		if page.Next == "" || full {
			s.noteFaulty(faulty, fault)
			s.noteReason(l.filter.reason, out.count)
			if page.Next != "" {
				s.notef("%s; go on with --cursor %s", progressOf(page.Scanned, page.Total, out.count), page.Next)
			}
			return out.end(st.none)
		}
	}
}

// errorView counts letters that have something in common.
type errorView struct {
	Count       int            `json:"count"`
	Topic       string         `json:"topic,omitempty"`
	Group       string         `json:"group,omitempty"`
	Reason      driver.Reason  `json:"reason,omitempty"`
	Fingerprint string         `json:"fingerprint,omitempty"`
	Key         string         `json:"key,omitempty"`
	Day         string         `json:"day,omitempty"`
	Bytes       int64          `json:"bytes"`
	FirstDied   *jsontime.Time `json:"first_died,omitempty"`
	LastDied    *jsontime.Time `json:"last_died,omitempty"`
}

// countColumns are those of a table by what letters have in common.
func countColumns(by deadletter.By) []column[errorView] {
	topic := column[errorView]{title: "topic", width: 30, cell: func(v errorView) any { return v.Topic }}
	group := column[errorView]{title: "group", width: 20, cell: func(v errorView) any { return v.Group }}
	reason := column[errorView]{title: "reason", width: 16, cell: func(v errorView) any { return v.Reason }}
	all := []column[errorView]{{title: "count", number: true, cell: func(v errorView) any { return v.Count }}}
	switch by {
	case deadletter.ByFingerprint:
		all = append(all, topic, group, reason, column[errorView]{title: "error", width: 60,
			cell: func(v errorView) any { return v.Fingerprint }})
	case deadletter.ByReason:
		all = append(all, reason)
	case deadletter.ByTopic:
		all = append(all, topic)
	case deadletter.ByGroup:
		all = append(all, topic, group)
	case deadletter.ByKey:
		all = append(all, column[errorView]{title: "key", width: 40, cell: func(v errorView) any { return v.Key }})
	case deadletter.ByDay:
		all = append(all, column[errorView]{title: "day", cell: func(v errorView) any { return v.Day }})
	}
	return append(all, column[errorView]{title: "last died", cell: func(v errorView) any { return clock(v.LastDied) }})
}

// countLetters prints how many letters have something in common, the most frequent first.
func (s session) countLetters(ctx context.Context, l listFlags, sel deadletter.Selection, by deadletter.By,
	st store) error {
	queue, err := s.queue()
	if err != nil {
		return err
	}
	var all deadletter.Tally
	q := deadletter.TallyQuery{By: by, Query: deadletter.Query{Selection: sel, Cursor: l.scope.cursor,
		MaxTime: time.Second}}
	for {
		if l.maxScan > 0 {
			q.MaxScan = l.maxScan - all.Scanned
		}
		part, err := queue.Tally(ctx, q)
		if err != nil {
			return err
		}
		all.Add(part)
		if q.Cursor = part.Next; part.Next == "" || l.maxScan > 0 && all.Scanned >= l.maxScan {
			break
		}
	}
	if all.Faulty > 0 {
		s.notef("%d could not be asked, and were left out", all.Faulty)
	}
	if all.Next != "" {
		s.notef("%s; go on with --cursor %s", progressOf(all.Scanned, all.Total, all.Matched), all.Next)
	}
	rows := make([]errorView, 0, len(all.Buckets))
	for _, b := range all.Buckets {
		rows = append(rows, errorView{Count: b.Count, Topic: b.Topic, Group: b.Group, Reason: b.Reason,
			Fingerprint: b.Fingerprint, Key: b.Key, Day: b.Day, Bytes: b.Bytes,
			FirstDied: jsontime.At(b.First), LastDied: jsontime.At(b.Last)})
	}
	if limit := l.scope.limit; limit > 0 && len(rows) > limit {
		s.notef("%d more kinds: raise --limit", len(rows)-limit)
		rows = rows[:limit]
	}
	if all.Others > 0 {
		s.notef("%d more are of kinds too many to tell apart: narrow them with --where", all.Others)
	}
	return list(s.remote, countColumns(by), rows, st.none)
}
