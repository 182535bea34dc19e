package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// errorView counts the dead letters with like errors.
type errorView struct {
	Count       int           `json:"count"`
	Topic       string        `json:"topic"`
	Group       string        `json:"group"`
	Reason      driver.Reason `json:"reason"`
	Fingerprint string        `json:"fingerprint"`
	FirstDied   *time.Time    `json:"first_died,omitempty"`
	LastDied    *time.Time    `json:"last_died,omitempty"`
}

var errorColumns = []column[errorView]{
	{title: "count", number: true, cell: func(v errorView) any { return v.Count }},
	{title: "topic", width: 30, cell: func(v errorView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v errorView) any { return v.Group }},
	{title: "reason", width: 16, cell: func(v errorView) any { return v.Reason }},
	{title: "error", width: 60, cell: func(v errorView) any { return v.Fingerprint }},
	{title: "last died", cell: func(v errorView) any { return clock(v.LastDied) }},
}

// listErrors prints the errors of all dead letters of the scope, the most frequent first.
func (s session) listErrors(ctx context.Context, sc scope, filter deadFilter) error {
	type kind struct {
		topic, group, fingerprint string
		reason                    driver.Reason
	}
	kinds := map[kind]*errorView{}
	limit := sc.limit
	sc.limit = 0 // of letters; that of errors is applied below
	err := sc.browse(ctx, s, func(q driver.Query, e driver.Entry) (bool, error) {
		if !filter.keep(e) {
			return false, nil
		}
		k := kind{q.Topic, q.Group, e.Dead.Fingerprint, e.Dead.Reason}
		if kinds[k] == nil {
			kinds[k] = &errorView{Topic: q.Topic, Group: q.Group, Reason: k.reason, Fingerprint: k.fingerprint, FirstDied: at(e.Dead.DiedAt)}
		}
		kinds[k].Count++
		kinds[k].LastDied = at(e.Dead.DiedAt) // dead letters come in the order of dying
		return true, nil
	})
	if err != nil {
		return err
	}
	rows := make([]errorView, 0, len(kinds))
	for v := range maps.Values(kinds) {
		rows = append(rows, *v)
	}
	slices.SortFunc(rows, func(a, b errorView) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Reason, b.Reason))
	})
	if limit > 0 && len(rows) > limit {
		s.notef("%d more kinds of errors: raise --limit", len(rows)-limit)
		rows = rows[:limit]
	}
	return list(s.remote, errorColumns, rows, noDead)
}
