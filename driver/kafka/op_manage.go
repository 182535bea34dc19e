package kafka

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(topic, c); err != nil {
		return err
	}
	t, err := d.registry.Existing(ctx, topic)
	if cluster.IsNotFound(err) {
		t, err = d.registry.Ensure(ctx, topic, registry.TopicRow{Config: c})
	}
	if err != nil {
		return err
	}
	want := c
	if want.Partitions == 0 {
		want.Partitions = d.registry.RowOf(t).Config.Partitions
	}
	if d.registry.RowOf(t).Implicit && (c.Partitions == 0 || c.Partitions == t.Partitions) {
		row := registry.TopicRow{Config: c, Paused: d.registry.RowOf(t).Paused}
		return d.registry.Put(ctx, registry.TopicKey(topic), row)
	}
	if d.registry.RowOf(t).Config != want {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q exists with %+v, not %+v", topic,
			d.registry.RowOf(t).Config, want), "use AlterTopic to change it", nil)
	}
	return nil
}

func checkConfig(topic string, c driver.TopicConfig) error {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.KeepMost > 0 {
		return driver.NewError(driver.ErrUnsupported, "this driver keeps settled messages by time only",
			"set Keep, and leave KeepMost zero", nil)
	}
	return nil
}

// AlterTopic changes the configuration. The number of partitions stays: keys would change theirs.
func (d *Driver) AlterTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(topic, c); err != nil {
		return err
	}
	t, err := d.registry.Existing(ctx, topic)
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != t.Partitions {
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("topic %q has %d partitions, and keeps them", topic,
			t.Partitions), "make a new topic: the order of keys depends on it", nil)
	}
	c.Partitions = d.registry.RowOf(t).Config.Partitions
	row := registry.TopicRow{Config: c, Paused: d.registry.RowOf(t).Paused}
	return d.registry.Put(ctx, registry.TopicKey(topic), row)
}

// DeleteTopic removes a topic with everything that belongs to it.
func (d *Driver) DeleteTopic(ctx context.Context, topic string) error {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	t, err := d.registry.Existing(ctx, topic)
	if err != nil {
		return err
	}
	groups := d.registry.GroupsOf(topic)
	for _, g := range groups {
		if err := d.groups.RefuseConsumers(ctx, topic, g); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := d.DeleteGroup(ctx, topic, g); err != nil {
			return err
		}
	}
	if err := d.delays.EndAll(ctx, topic); err != nil {
		return err
	}
	if err := d.registry.Put(ctx, registry.TopicKey(topic), nil); err != nil {
		return err
	}
	if t.Dead != nil {
		t.Dead.Close()
	}
	if t.Invalid != nil {
		t.Invalid.Close()
	}
	d.registry.ForgetTopic(topic)
	return d.tables.DeleteTopics(ctx, d.cluster.MainTopic(topic), d.cluster.DeadTopic(topic),
		d.cluster.InvalidTopic(topic))
}

// EnsureGroup creates a group.
func (d *Driver) EnsureGroup(ctx context.Context, topic, group string, o driver.GroupOptions) error {
	if err := driver.CheckGroup(topic, group); err != nil {
		return err
	}
	if err := o.Check(d.caps); err != nil {
		return err
	}
	if err := d.registry.MayStart(ctx, topic, group, o.Start); err != nil {
		return err
	}
	t, err := d.registry.Ensure(ctx, topic, registry.TopicRow{Implicit: true})
	if err != nil {
		return err
	}
	return d.registry.EnsureGroup(ctx, t, group, registry.GroupRow{Order: o.Order, Fixed: true}, o.Start)
}

// DeleteGroup removes a group with what it has not settled.
func (d *Driver) DeleteGroup(ctx context.Context, topic, group string) error {
	if err := driver.CheckGroup(topic, group); err != nil {
		return err
	}
	t, err := d.registry.Existing(ctx, topic)
	if err != nil {
		return err
	}
	var row registry.GroupRow
	if !d.registry.Row(registry.GroupKey(topic, group), &row) {
		return cluster.ErrNoGroup(topic, group)
	}
	if err := d.groups.RefuseConsumers(ctx, topic, group); err != nil {
		return err
	}
	if err := d.letters.endAllDead(ctx, t, group); err != nil {
		return err
	}
	if err := d.registry.Put(ctx, registry.GroupKey(topic, group), nil); err != nil {
		return err
	}
	t.Grouped.Store(false) // the next publish looks again
	d.groups.Forget(topic, group)
	if _, err := d.cluster.Admin.DeleteGroups(ctx, d.cluster.GroupID(topic, group)); err != nil {
		return cluster.Unsure("the deletion", err)
	}
	return d.tables.DeleteTopics(ctx, d.cluster.RetryTopic(topic, group))
}

// Pause stops deliveries of a topic, or of one group of it.
func (d *Driver) Pause(ctx context.Context, topic, group string, paused bool) error {
	if err := driver.CheckScope(topic, group); err != nil {
		return err
	}
	defer d.groups.Changed() // before it returns, not a moment later
	t, err := d.registry.Existing(ctx, topic)
	if err != nil {
		return err
	}
	if group == "" {
		row := d.registry.RowOf(t)
		row.Paused = paused
		return d.registry.Put(ctx, registry.TopicKey(topic), row)
	}
	var row registry.GroupRow
	if !d.registry.Row(registry.GroupKey(topic, group), &row) {
		return cluster.ErrNoGroup(topic, group)
	}
	row.Paused = paused
	return d.registry.Put(ctx, registry.GroupKey(topic, group), row)
}
