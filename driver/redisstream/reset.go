package redisstream

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// rewind is how a group is made to start again.
type rewind struct {
	group    string
	from, to driver.Position
	start    string // instead of from, where a partition said it
	skip     bool   // what is ready before from
	cause    driver.Cause
	dry      bool
	force    bool
}

// Reset makes a group start again from a position.
func (d *Driver) Reset(ctx context.Context, name, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	t, err := d.topics.Existing(ctx, name, o.Check(name, group))
	if err != nil {
		return driver.ResetReport{}, err
	}
	return d.rewind(ctx, t.Parts,
		rewind{group: group, from: o.To, skip: true, cause: driver.CauseReplay, dry: o.DryRun, force: o.Force})
}

// rewind works through partitions. Whether it may be done is looked at first, everywhere.
func (d *Driver) rewind(ctx context.Context, parts []*partition, r rewind) (driver.ResetReport, error) {
	report := driver.ResetReport{}
	args := func(p *partition, look bool) []any {
		return []any{cmp.Or(r.start, positionText(placeIn(r.from, p))), positionText(placeIn(r.to, p)),
			redisconn.Flag(r.skip), int(r.cause), redisconn.Flag(r.dry), redisconn.Flag(r.force), redisconn.Flag(look)}
	}
	add := func(reply redisconn.Reply) {
		report.Replayed += int(reply.Number(1))
		report.Skipped += int(reply.Number(2))
	}
	for _, look := range []bool{true, false} {
		for _, p := range parts {
			if err := p.sweep(ctx, &d.scripts.reset, r.group, 3, add, args(p, look)...); err != nil {
				return report, err
			}
		}
	}
	return report, nil
}

// placeIn is a position as a partition understands it: one of another partition is the time of that entry.
func placeIn(at driver.Position, p *partition) driver.Position {
	if at.From == driver.FromRef && int(at.Ref.Partition) != p.index {
		return driver.Position{From: driver.FromTime, Time: time.UnixMilli(int64(at.Ref.Pos))}
	}
	return at
}

// positionText says where a group begins, as lua/replay.lua reads it.
func positionText(p driver.Position) string {
	switch p.From {
	case driver.FromBegin:
		return "b"
	case driver.FromTime:
		// the streams know milliseconds, cut off: what came later in that of the position has no other time
		return "t" + strconv.FormatInt(redisconn.Moment(p.Time.Truncate(time.Millisecond)), 10)
	case driver.FromRef:
		return "r" + streamID(p.Ref)
	}
	return ""
}
