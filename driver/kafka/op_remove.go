package kafka

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Purge removes what is ready, waiting or delayed as of its start.
func (d *Driver) Purge(ctx context.Context, topic, group string) (int, error) {
	t, err := d.topic(ctx, driver.CheckScope(topic, group), topic)
	if err != nil {
		return 0, err
	}
	groups, err := d.scope(t, group)
	if err != nil {
		return 0, err
	}
	n := 0
	if group == "" {
		if n, err = d.delays.Purge(ctx, topic); err != nil {
			return 0, err
		}
	}
	ends, err := d.registry.Position(ctx, t, registry.EndPosition)
	if err != nil {
		return n, err
	}
	for _, g := range groups {
		removed, err := d.groups.Change(ctx, t, g, consumer.Command{Op: "purge"}, ends)
		n += removed
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Delete removes single messages, one error each.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	var all []request
	for i, target := range ts {
		if errs[i] = target.Check(); errs[i] == nil {
			all = append(all, request{target, nil, &errs[i]})
		}
	}
	for _, q := range d.letters.changeLetters(ctx, all) {
		*q.err = d.deleteOne(ctx, q.Target)
	}
	return errs
}

func (d *Driver) deleteOne(ctx context.Context, target driver.Target) error {
	t, err := d.registry.Existing(ctx, target.Topic)
	if err != nil {
		return err
	}
	if x, err := d.delays.Find(ctx, target); x != nil || err != nil {
		if err != nil {
			return err
		}
		return d.delays.Change(ctx, x, delay.EveryStamp, compacted.Unchanged)
	}
	es, err := d.getDue(ctx, t, target)
	if err != nil {
		return err
	}
	if target.Death > 0 && !meant(target, es) {
		return target.Outlived()
	}
	for _, e := range es {
		if e.State == driver.StateInflight {
			return consumer.ErrBusy(e.ID, e.State)
		}
	}
	var failed error
	for _, e := range es {
		failed = errors.Join(failed, d.deleteEntry(ctx, t, e))
	}
	return failed
}

func (d *Driver) deleteEntry(ctx context.Context, t *registry.TopicState, e driver.Entry) error {
	switch e.State {
	case driver.StateInvalid:
		return d.changeInvalid(ctx, t, e.Ref, compacted.Unchanged)
	case driver.StateDead:
		return d.letters.changeDead(ctx, t, e, nil)
	}
	n, err := d.groups.Change(ctx, t, e.Group, consumer.Command{Op: "delete", Ref: e.Ref, ID: e.ID}, nil)
	if err == nil && n == 0 {
		err = cluster.ErrNoMessage(driver.Target{Topic: t.Name, ID: e.ID, Ref: e.Ref})
	}
	return err
}
