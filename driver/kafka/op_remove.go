package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
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
	ends, err := d.cluster.AnsweredEnds(ctx, t.Main)
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
	changer{d}.change(ctx, all)
	return errs
}
