package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
)

// Audit looks at the unsettled messages of every group. Counts are estimates here, so that they are not compared.
func (d *Driver) Audit(ctx context.Context, topic string, _ bool) (driver.AuditReport, error) {
	t, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
	if err != nil {
		return driver.AuditReport{}, err
	}
	report := driver.AuditReport{Topic: topic}
	if report.Stats, err = d.Stats(ctx, topic); err != nil {
		return report, err
	}
	report.Checked = int(report.Stats.Delayed + report.Stats.Held)
	dead, err := d.registry.DeadLetters(ctx, t)
	if err != nil {
		return report, err
	}
	for _, g := range d.registry.GroupsOf(topic) {
		report.Checked += int(dead.Count(g))
		vs, err := d.groups.Look(ctx, t, g)
		if err != nil {
			return report, err
		}
		report.Checked += len(vs.Entries(func(*consumer.Item) bool { return true }))
		report.Problems = append(report.Problems, vs.Orphans()...)
		vs.Close()
	}
	return report, nil
}
