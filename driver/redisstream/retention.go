package redisstream

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Retain sets the retention of a topic. Consumers apply it as they renew their ownership; Trim applies it at once.
func (d *Driver) Retain(ctx context.Context, name string, r driver.Retention) error {
	t, err := d.topics.Existing(ctx, name, r.Check())
	if err != nil {
		return err
	}
	part := func(all int64) int64 { return redisshell.Share(all, len(t.Parts)) }
	_, err = consultAll(ctx, t, &d.scripts.configure, "", "", "retain_age", redisconn.Milliseconds(r.Age),
		"retain_entries", part(r.Entries),
		"retain_bytes", part(r.Bytes), "retain_drop", redisconn.Flag(r.DropUnsettled), "retains",
		redisconn.Flag(r != driver.Retention{}),
		"retain_age_ns", int64(r.Age), "retain_all_entries", r.Entries, "retain_all_bytes", r.Bytes)
	return err
}

// Retention returns what Retain has set, for all partitions together.
func (d *Driver) Retention(ctx context.Context, name string) (driver.Retention, error) {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return driver.Retention{}, err
	}
	f, err := d.client.HGetAll(ctx, t.Parts[0].key).Result()
	return driver.Retention{Age: time.Duration(redisshell.Whole(f, "retain_age_ns")),
		Entries:       redisshell.Whole(f, "retain_all_entries"),
		Bytes:         redisshell.Whole(f, "retain_all_bytes"),
		DropUnsettled: f["retain_drop"] == "1"}, redisconn.Classify(err)
}

// Trim applies the retention of a topic.
func (d *Driver) Trim(ctx context.Context, name string) (driver.TrimReport, error) {
	report := driver.TrimReport{}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return report, err
	}
	for _, p := range t.Parts {
		for more := true; more; {
			var one driver.TrimReport
			one, more, err = p.trim(ctx, "")
			report.Removed, report.Dropped, report.Waits = report.Removed+one.Removed, report.Dropped+one.Dropped,
				report.Waits || one.Waits
			if err != nil {
				return report, err
			}
		}
	}
	return report, nil
}

// trim removes some entries of a partition, and tells whether there are more to remove. Done by an owner (its group,
// member and epoch), it removes nothing when that is not the owner any more.
func (p *partition) trim(ctx context.Context, group string, by ...any) (driver.TrimReport, bool, error) {
	r, err := p.consult(ctx, &p.d.scripts.trim, group, by...)
	if err != nil || r.Text(0) == "lost" {
		return driver.TrimReport{}, false, err
	}
	report := driver.TrimReport{Removed: int(r.Number(1)), Dropped: int(r.Number(2)), Waits: r.Text(4) == "1"}
	if report.Dropped > 0 {
		p.d.o.Logger.Warn("ferry: retention dropped messages that were not settled", "topic", p.t.Name, "partition", p.index,
			"dropped", report.Dropped)
	}
	return report, r.Text(3) == "1", nil
}

// retain applies the retention of a partition that we own, some rounds of it.
func (s *subscription) retain(ctx context.Context, p *partition, epoch string) error {
	for range 20 {
		_, more, err := p.trim(ctx, s.Options.Group, s.ID, epoch)
		if err != nil || !more {
			return err
		}
	}
	return nil
}
