package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// Subscribe joins one group of one topic, and creates either if it does not exist.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	o, err := o.Resolve(d.caps)
	if err != nil {
		return nil, err
	}
	t, err := d.ensureGroup(ctx, o.Topic, o.Group, driver.GroupOptions{Order: o.Order, Start: o.Start})
	if err == nil {
		err = d.registry.CheckWidth(ctx, t, o.Group)
	}
	if err != nil {
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
