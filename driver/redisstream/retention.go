package redisstream

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Retention bounds what a topic keeps. The zero value bounds nothing: entries go when the last group has settled them, or Keep later.
type Retention struct {
	// Age, Entries and Bytes (as the server reckons the memory of the streams) bound the streams of a topic. Zero: no bound.
	Age            time.Duration
	Entries, Bytes int64
	// DropUnsettled lets the bounds remove what groups have not settled, counted as dropped. Otherwise they wait for it.
	DropUnsettled bool
}

// TrimReport tells what a trim did.
type TrimReport struct {
	Removed int  // entries
	Dropped int  // of those, not settled by some group
	Waits   bool // for what is not settled
}

// Retain sets the retention of a topic. Consumers apply it as they renew their ownership; Trim applies it at once.
func (d *Driver) Retain(ctx context.Context, name string, r Retention) error {
	if r.Age < 0 || r.Entries < 0 || r.Bytes < 0 {
		return driver.NewError(driver.ErrInvalid, "a bound of the retention is negative", "use zero for no bound", nil)
	}
	t, err := d.existing(ctx, name)
	if err != nil {
		return err
	}
	n := int64(len(t.parts))
	part := func(all int64) int64 { return (all + n - 1) / n }
	_, err = d.each(ctx, t, &d.scripts.configure, "", "topic", "", "retain_age", milliseconds(r.Age), "retain_entries", part(r.Entries),
		"retain_bytes", part(r.Bytes), "retain_drop", flag(r.DropUnsettled), "retains", flag(r != Retention{}))
	return err
}

// Trim applies the retention of a topic.
func (d *Driver) Trim(ctx context.Context, name string) (TrimReport, error) {
	report := TrimReport{}
	t, err := d.existing(ctx, name)
	if err != nil {
		return report, err
	}
	for _, p := range t.parts {
		for more := true; more; {
			one, again, err := d.trim(ctx, t, p)
			report.Removed, report.Dropped, report.Waits = report.Removed+one.Removed, report.Dropped+one.Dropped, report.Waits || one.Waits
			if err != nil {
				return report, err
			}
			more = again
		}
	}
	return report, nil
}

// trim removes some entries of a partition, and tells whether there are more to remove. Done by an owner (its group, member and
// epoch), it removes nothing when that is not the owner any more.
func (d *Driver) trim(ctx context.Context, t *topic, p *partition, by ...any) (TrimReport, bool, error) {
	replies, err := d.each(ctx, &topic{name: t.name, parts: []*partition{p}}, &d.scripts.trim, "", by...)
	if err != nil || text(replies[0], 0) == "lost" {
		return TrimReport{}, false, err
	}
	r := replies[0]
	report := TrimReport{Removed: int(number(r, 1)), Dropped: int(number(r, 2)), Waits: text(r, 4) == "1"}
	if report.Dropped > 0 {
		d.o.Logger.Warn("ferry: retention dropped messages that were not settled", "topic", t.name, "partition", p.index, "dropped", report.Dropped)
	}
	return report, text(r, 3) == "1", nil
}

// retain applies the retention of a partition that we own, some rounds of it.
func (s *subscription) retain(ctx context.Context, p *partition, epoch string) error {
	for range 20 {
		_, more, err := s.d.trim(ctx, s.t, p, s.o.Group, s.id, epoch)
		if err != nil || !more {
			return err
		}
	}
	return nil
}
