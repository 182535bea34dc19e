package kafka

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// topic is one that exists. An operation on it begins with this, unless a check of its arguments has failed.
func (d *Driver) topic(ctx context.Context, check error, topic string) (*registry.TopicState, error) {
	if check != nil {
		return nil, check
	}
	return d.registry.Existing(ctx, topic)
}

// group is the topic of a group, if both exist. An operation on the group begins with this.
func (d *Driver) group(ctx context.Context, check error, topic, group string) (*registry.TopicState, error) {
	t, err := d.topic(ctx, check, topic)
	if err == nil {
		_, err = d.registry.Group(topic, group)
	}
	return t, err
}

// scope is the group that is named, if it exists, or all of the topic where none is.
func (d *Driver) scope(t *registry.TopicState, group string) ([]string, error) {
	if group == "" {
		return d.registry.GroupsOf(t.Name), nil
	}
	_, err := d.registry.Group(t.Name, group)
	return []string{group}, err
}

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	t, err := d.topic(ctx, checkConfig(topic, c), topic)
	if cluster.IsNotFound(err) {
		t, err = d.registry.Ensure(ctx, topic, registry.TopicRow{Config: c})
	}
	if err != nil {
		return err
	}
	row, want := d.registry.RowOf(t), c
	if want.Partitions == 0 {
		want.Partitions = row.Config.Partitions
	}
	switch {
	case row.Implicit && (c.Partitions == 0 || c.Partitions == t.Partitions):
		return d.registry.Put(ctx, registry.TopicKey(topic), registry.TopicRow{Config: c, Paused: row.Paused, Born: row.Born})
	case row.Config != want:
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q exists with %+v, not %+v", topic, row.Config, want),
			"use AlterTopic to change it", nil)
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
	t, err := d.topic(ctx, checkConfig(topic, c), topic)
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != t.Partitions {
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("topic %q has %d partitions, and keeps them", topic,
			t.Partitions), "make a new topic: the order of keys depends on it", nil)
	}
	row := d.registry.RowOf(t)
	c.Partitions = row.Config.Partitions
	return d.registry.Put(ctx, registry.TopicKey(topic), registry.TopicRow{Config: c, Paused: row.Paused, Born: row.Born})
}

// DeleteTopic removes a topic with everything that belongs to it.
func (d *Driver) DeleteTopic(ctx context.Context, topic string) error {
	t, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
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
	for _, x := range []*compacted.Index{t.Dead, t.Invalid} {
		if x != nil {
			x.Close()
		}
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
	_, err := d.ensureGroup(ctx, topic, group, o)
	return err
}

// ensureGroup makes a group, and its topic, where they do not exist.
func (d *Driver) ensureGroup(ctx context.Context, topic, group string,
	o driver.GroupOptions) (*registry.TopicState, error) {
	if err := d.registry.MayStart(ctx, topic, group, o.Start); err != nil {
		return nil, err
	}
	t, err := d.registry.Ensure(ctx, topic, registry.TopicRow{Implicit: true})
	if err == nil {
		err = d.registry.EnsureGroup(ctx, t, group, registry.GroupRow{Order: o.Order, Fixed: true}, o.Start)
	}
	return t, err
}

// DeleteGroup removes a group with what it has not settled.
func (d *Driver) DeleteGroup(ctx context.Context, topic, group string) error {
	t, err := d.group(ctx, driver.CheckGroup(topic, group), topic, group)
	if err != nil {
		return err
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
	defer d.groups.Changed() // before it returns, not a moment later
	t, err := d.topic(ctx, driver.CheckScope(topic, group), topic)
	if err != nil {
		return err
	}
	if group == "" {
		row := d.registry.RowOf(t)
		row.Paused = paused
		return d.registry.Put(ctx, registry.TopicKey(topic), row)
	}
	row, err := d.registry.Group(topic, group)
	if err != nil {
		return err
	}
	row.Paused = paused
	return d.registry.Put(ctx, registry.GroupKey(topic, group), row)
}
