package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Reset makes a group start again from a position, by committing other offsets.
func (d *Driver) Reset(ctx context.Context, topic, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	var report driver.ResetReport
	t, err := d.group(ctx, o.Check(topic, group), topic, group)
	if err != nil {
		return report, err
	}
	busy, err := d.groups.Consumers(ctx, topic, group)
	switch {
	case err != nil:
		return report, err
	case busy && !o.DryRun && !o.Force:
		return report, d.groups.RefuseConsumers(ctx, topic, group)
	}
	to, err := d.registry.Position(ctx, t, o.To)
	if err != nil {
		return report, err
	}
	ends, err := d.cluster.CommittedEnds(ctx, t.Main)
	if err != nil {
		return report, err
	}
	meta, rs, err := d.groups.Compare(ctx, t, group, to, ends, &report)
	if err != nil || o.DryRun {
		return report, err
	}
	err = d.groups.WhileAway(ctx, t, group, func() error {
		if err := d.setPosition(ctx, t, group, to, meta, rs, o.Force); err != nil {
			return err
		}
		return d.groups.SkipLogged(ctx, t, group, to)
	})
	if err == nil && busy && report.Skipped > 0 { // who was back sooner has read what is skipped
		err = d.skipAgain(ctx, t, group, to)
	}
	return report, err
}

// skipAgain ends what is skipped with those who consume again. Partitions may change their owners meanwhile, since
// consumers join one after the other.
func (d *Driver) skipAgain(ctx context.Context, t *registry.TopicState, group string, to map[int32]int64) error {
	for tries := 1; ; tries++ {
		_, err := d.groups.Change(ctx, t, group, consumer.Command{Op: consumer.Skip}, to)
		if !errors.Is(err, driver.ErrNotApplied) || tries > resetTries {
			return err
		}
		if err := cluster.Pause(ctx, 5*cluster.FetchWait); err != nil {
			return err
		}
	}
}

// setPosition commits other offsets while nobody consumes. By force consumers are made to leave; they learn of it a
// moment later, and join again. Records go to the retry log each time: who owned it meanwhile may have ended them.
func (d *Driver) setPosition(ctx context.Context, t *registry.TopicState, group string, to map[int32]int64,
	meta map[int32]string, rs []*kgo.Record, force bool) error {
	for tries := 1; ; tries++ {
		if err := d.cluster.Produce(ctx, rs...); err != nil {
			return err
		}
		err := d.registry.CommitIdle(ctx, t, group, to, meta) // it is refused while others consume
		if err == nil || !force || tries > resetTries {
			return err
		}
		if err := d.cluster.Expel(ctx, d.cluster.GroupID(t.Name, group)); err != nil {
			return err
		}
	}
}

// resetTries bounds how often consumers are made to leave that are back before the offsets are set.
const resetTries = 10
