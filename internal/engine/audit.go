package engine

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// Audit counts every message of a topic one by one and compares that with the counts, and with the store if there is
// one. What is wrong in memory cannot be repaired: it is a bug of the engine, and the report says so.
func (e *Engine) Audit(ctx context.Context, topic string, fix bool) (driver.AuditReport, error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return driver.AuditReport{}, err
	}
	report := driver.AuditReport{Topic: topic}
	if err := ctx.Err(); err != nil {
		return report, err
	}
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return report, err
	}
	t.census(&report, now)
	if r := t.unlock(now); r == nil {
		return report, nil
	}
	return report, t.auditStore(ctx, fix, &report)
}

// census counts the messages of a topic.
func (t *topic) census(report *driver.AuditReport, now moment) {
	report.Stats = t.statistics(now)
	a := census{t: t, groups: map[*group]*[done + 1]int64{}, report: report}
	for _, g := range t.groups {
		a.groups[g] = new([done + 1]int64)
	}
	for _, en := range t.log.all() {
		a.entry(en)
	}
	report.Checked += t.cold.count
	a.compare()
}

// census counts what is there.
type census struct {
	t      *topic
	topic  [invalid + 1]int64
	groups map[*group]*[done + 1]int64
	report *driver.AuditReport
}

func (a *census) entry(e *entry) {
	a.report.Checked++
	a.topic[e.state]++
	if e.state == fanned && e.items == nil {
		a.problem("orphan", "", e.id, "belongs to no group")
	}
	for it := range e.all() {
		count := a.groups[it.g]
		switch {
		case count == nil:
			a.problem("orphan", it.g.name, e.id, "belongs to a group that is gone")
			continue
		case (it.state == inflight) != (it.claim != nil):
			a.problem("lease", it.g.name, e.id, "is in flight without a lease, or leased without being in flight")
		}
		count[it.state]++
	}
}

func (a *census) compare() {
	s := a.report.Stats
	a.count("", "delayed", s.Delayed, a.topic[delayed])
	a.count("", "held", s.Held, a.topic[held])
	a.count("", "invalid", s.Invalid, a.topic[invalid])
	for i, g := range a.t.groups {
		c, gs := a.groups[g], s.Groups[i]
		a.count(g.name, "ready", gs.Ready, c[ready]+g.cold)
		a.count(g.name, "in flight", gs.Inflight, c[inflight])
		a.count(g.name, "waiting", gs.Waiting, c[waiting])
		a.count(g.name, "dead", gs.Dead, c[dead])
	}
	for _, err := range s.Unbalanced() {
		a.problem("balance", "", "", err)
	}
}

func (a *census) count(group, state string, counted, found int64) {
	if counted != found {
		a.problem("count", group, "", fmt.Sprintf("%d messages are %s, but %d are counted", found, state, counted))
	}
}

func (a *census) problem(kind, group, id, text string) {
	a.report.Problems = append(a.report.Problems, driver.Problem{Kind: kind, Group: group, ID: id, Text: text})
}
