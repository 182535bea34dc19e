package redisstream

import (
	"context"
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Diagnose looks at the server again and says what it finds.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	s, err := redisconn.Examine(ctx, d.client, registryKey(d.o.Prefix))
	if err != nil {
		return nil, err
	}
	return s.Findings(), nil
}

// Audit looks at every message of a topic. It repairs nothing yet: a problem that it finds stays, and says so.
func (d *Driver) Audit(ctx context.Context, name string, _ bool) (driver.AuditReport, error) {
	report := driver.AuditReport{Topic: name}
	t, err := d.existing(ctx, name)
	if err != nil {
		return report, err
	}
	replies, err := d.each(ctx, t, &d.scripts.audit, "")
	if err != nil {
		return report, err
	}
	for _, r := range replies {
		n, _ := strconv.Atoi(text(r, 1))
		report.Checked += n
		for _, x := range list(r, 2) {
			p, _ := x.([]any)
			report.Problems = append(report.Problems, driver.Problem{Kind: text(p, 0), Group: text(p, 1), ID: text(p, 2), Text: text(p, 3)})
		}
	}
	report.Stats, err = d.Stats(ctx, name)
	return report, err
}
