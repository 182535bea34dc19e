package redisstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// auditTries bounds how often a partition is counted again because it changed meanwhile.
const auditTries = 3

// Audit looks at every message of a topic, some in each call of a script, and repairs what is wrong with it in the same
// step. The counts of a partition are compared only if they did not change while it was looked at.
func (d *Driver) Audit(ctx context.Context, name string, fix bool) (driver.AuditReport, error) {
	report := driver.AuditReport{Topic: name}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return report, err
	}
	for _, p := range t.Parts {
		a := &auditing{d: d, p: p, fix: fix}
		for range auditTries {
			if err := a.run(ctx); err != nil {
				return report, err
			}
			if a.quiet {
				break
			}
		}
		if a.quiet {
			if err := a.compare(ctx); err != nil {
				return report, err
			}
		}
		report.Checked += a.checked
		report.Problems = append(report.Problems, a.problems...)
	}
	report.Stats, err = d.Stats(ctx, name)
	return report, err
}

// auditing is an audit of one partition.
type auditing struct {
	d   *Driver
	p   *partition
	fix bool

	checked  int
	problems []driver.Problem
	found    map[string]int64
	counted  map[string]string
	quiet    bool // the counters did not change meanwhile
}

// run looks at all messages.
func (a *auditing) run(ctx context.Context) error {
	a.checked, a.found, a.counted, a.quiet = 0, map[string]int64{}, nil, true
	mended := a.problems
	a.problems = nil
	err := a.p.sweep(ctx, &a.d.scripts.audit, "", 4, func(r redisconn.Reply) {
		a.checked += int(r.Number(1))
		for _, x := range r.List(2) {
			p := redisconn.ReplyOf(x)
			a.problems = append(a.problems,
				driver.Problem{Kind: p.Text(0), Group: p.Text(1), ID: p.Text(2), Text: p.Text(3), Fixed: p.Text(4) == "1"})
			a.quiet = a.quiet && p.Text(4) != "1" // what is found changes with it
		}
		for found, i := r.List(3), 0; i < len(found); i += 2 {
			a.found[found.Text(i)] += found.Number(i + 1)
		}
		counted := r.List(5).Map()
		a.quiet = a.quiet && (a.counted == nil || maps.Equal(a.counted, counted))
		a.counted = counted
	}, redisconn.Flag(a.fix))
	for _, p := range mended { // a repaired one is not found again
		if p.Fixed {
			a.problems = append(a.problems, p)
		}
	}
	return err
}

// compare compares what was counted with what was found, and mends the counters. They are reckoned from others: what is
// ready, for example, is what was received and is nothing else; a difference is added, so that it does not matter what
// is counted meanwhile.
func (a *auditing) compare(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(a.counted)) {
		group, what, _ := strings.Cut(key, " ")
		counted := redisshell.Whole(a.counted, key)
		c, compared := counters[what]
		if !compared || counted == a.found[key] {
			continue
		}
		p := driver.Problem{Kind: "count", Group: group,
			Text: fmt.Sprintf("partition %d, %s: %d counted, %d found", a.p.index, c.text, counted, a.found[key])}
		if a.fix && c.field != "" {
			hash := a.p.key
			if group != "" {
				hash = a.p.sibling("g:" + group + ":group")
			}
			if err := a.d.client.HIncrBy(ctx, hash, c.field, a.found[key]-counted).Err(); err != nil {
				return redisconn.Classify(err)
			}
			p.Fixed = true
		}
		a.problems = append(a.problems, p)
	}
	return nil
}

// counters are what lua/audit.lua counts, and the field that a difference is added to; none where it is the size of a
// structure, which is mended by what is in it.
var counters = map[string]struct{ text, field string }{
	"R": {"ready", "received"}, "I": {"in flight", ""}, "W": {"waiting", ""}, "D": {"dead", ""},
	"messages": {"messages", "messages"}, "bytes": {"bytes", "bytes"},
	"published": {"published and never heard of again", "published"},
}
