package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Audit looks at every message of a topic.
func (d *Driver) Audit(ctx context.Context, name string, fix bool) (driver.AuditReport, error) {
	report := driver.AuditReport{Topic: name}
	t, err := d.existing(ctx, name)
	if err != nil {
		return report, err
	}
	if report.Stats, err = d.Stats(ctx, name); err != nil {
		return report, err
	}
	for _, s := range t.shards {
		after := uint64(0)
		for {
			seqs, ended, err := s.following(ctx, after, browseAtATime)
			if err != nil {
				return report, err
			}
			if ended {
				break
			}
			report.Checked += len(seqs)
			after = seqs[len(seqs)-1]
		}
	}
	_ = fix
	return report, nil
}
