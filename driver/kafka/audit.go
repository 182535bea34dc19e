package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Audit looks at the unsettled messages of every group. Counts are estimates here, so that they are not compared.
func (d *Driver) Audit(ctx context.Context, topic string, _ bool) (driver.AuditReport, error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return driver.AuditReport{}, err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return driver.AuditReport{}, err
	}
	report := driver.AuditReport{Topic: topic}
	if report.Stats, err = d.Stats(ctx, topic); err != nil {
		return report, err
	}
	report.Checked = int(report.Stats.Delayed + report.Stats.Held)
	for _, g := range d.groupsOf(topic) {
		dead, err := d.deadLetters(ctx, t)
		if err != nil {
			return report, err
		}
		report.Checked += int(dead.count(g))
		vs, err := d.look(ctx, t, g)
		if err != nil {
			return report, err
		}
		for _, v := range vs.all {
			report.Checked += len(v.entries(func(*item) bool { return true }))
			if !v.visit {
				report.Problems = append(report.Problems, v.orphans()...)
			}
		}
		vs.close()
	}
	return report, nil
}

// orphans are in flight without a lease.
func (v *view) orphans() (out []driver.Problem) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.parts {
		for it := range p.items.all() {
			if it.state == inflight && it.claimed == nil {
				out = append(out, driver.Problem{Kind: "orphan", Group: v.group, ID: it.msg.ID, Text: "in flight without a lease"})
			}
		}
	}
	return out
}
