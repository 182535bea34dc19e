package kafka

import (
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// replayAtOnce is how many records are read, and stored again, at the same time.
const replayAtOnce = 500

// Replay adds what a group has settled of what is kept to its retry log, in the order it was published, like dead
// letters that are replayed. What is not settled, dead or past its TTL is left as it is. A replay that was broken off
// may be repeated: what it has added and is not settled is not added again.
func (d *Driver) Replay(ctx context.Context, topic, group string, o driver.ReplayOptions) (driver.ResetReport, error) {
	report := driver.ResetReport{}
	t, err := d.group(ctx, o.Check(topic, group), topic, group)
	if err != nil || d.registry.RowOf(t).Config.Keep <= 0 {
		return report, err
	}
	if o.From.From == driver.FromEnd {
		o.From = registry.BeginPosition
	}
	from, err := d.registry.Position(ctx, t, o.From)
	if err != nil {
		return report, err
	}
	to, err := d.registry.Position(ctx, t, o.To)
	if err != nil {
		return report, err
	}
	x, err := d.groups.SettledOf(ctx, t, group)
	if err != nil {
		return report, err
	}
	for _, id := range slices.Sorted(maps.Keys(x.Parts)) {
		for at := from[id]; at < min(to[id], x.Parts[id].Next); at += replayAtOnce {
			rs, err := x.Again(ctx, id, at, min(at+replayAtOnce, to[id], x.Parts[id].Next))
			if err == nil && !o.DryRun {
				err = d.replayAll(ctx, t, group, rs)
			}
			if err != nil {
				return report, err
			}
			report.Replayed += len(rs)
		}
	}
	return report, nil
}

// replayAll stores records in a retry log. Those of one call are of one partition of the main topic.
func (d *Driver) replayAll(ctx context.Context, t *registry.TopicState, group string, rs []*kgo.Record) error {
	if len(rs) == 0 {
		return nil
	}
	if err := d.cluster.Produce(ctx, rs...); err != nil {
		return err
	}
	return d.groups.Taken(ctx, t, group, rs[len(rs)-1])
}
