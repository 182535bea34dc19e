package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Subscribe joins one group of one topic, and creates either if it does not exist.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	o, err := o.Resolve(d.caps)
	if err != nil {
		return nil, err
	}
	if err := d.registry.MayStart(ctx, o.Topic, o.Group, o.Start); err != nil {
		return nil, err
	}
	t, err := d.registry.Ensure(ctx, o.Topic, registry.TopicRow{Implicit: true})
	if err != nil {
		return nil, err
	}
	if err := d.registry.EnsureGroup(ctx, t, o.Group, registry.GroupRow{Order: o.Order, Fixed: true},
		o.Start); err != nil {
		return nil, err
	}
	if err := d.registry.CheckWidth(ctx, t, o.Group); err != nil {
		return nil, err
	}
	if _, err := d.delays.Existing(ctx); err != nil { // whoever consumes also fires
		return nil, err
	}
	if err := d.cluster.StartClock(ctx); err != nil {
		return nil, err
	}
	s, barred, err := d.groups.Admit(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if barred != nil {
		_ = s.Close(context.WithoutCancel(ctx)) // it never began
		return nil, cluster.Forbidden("consuming the topic in the group", barred)
	}
	return s, nil
}
