package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(topic, c); err != nil {
		return err
	}
	t, err := d.existing(ctx, topic)
	if isNotFound(err) {
		t, err = d.ensure(ctx, topic, topicRow{Config: c})
	}
	if err != nil {
		return err
	}
	want := c
	if want.Partitions == 0 {
		want.Partitions = d.rowOf(t).Config.Partitions
	}
	if d.rowOf(t).Implicit && (c.Partitions == 0 || c.Partitions == t.partitions) {
		row := topicRow{Config: c, Paused: d.rowOf(t).Paused}
		if err := d.putMeta(ctx, topicKey(topic), row); err != nil {
			return err
		}
		return nil
	}
	if d.rowOf(t).Config != want {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q exists with %+v, not %+v", topic, d.rowOf(t).Config, want), "use AlterTopic to change it", nil)
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
		return driver.NewError(driver.ErrUnsupported, "this driver keeps settled messages by time only", "set Keep, and leave KeepMost zero", nil)
	}
	return nil
}

// AlterTopic changes the configuration. The number of partitions stays: keys would change theirs.
func (d *Driver) AlterTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(topic, c); err != nil {
		return err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != t.partitions {
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("topic %q has %d partitions, and keeps them", topic, t.partitions), "make a new topic: the order of keys depends on it", nil)
	}
	c.Partitions = d.rowOf(t).Config.Partitions
	row := topicRow{Config: c, Paused: d.rowOf(t).Paused}
	if err := d.putMeta(ctx, topicKey(topic), row); err != nil {
		return err
	}
	return nil
}

// consumers says whether a group has members, here or elsewhere.
func (d *Driver) consumers(ctx context.Context, topic, group string) (bool, error) {
	id := d.groupID(topic, group)
	d.mu.Lock()
	m := d.members[id]
	d.mu.Unlock()
	if m != nil {
		return true, nil
	}
	groups, err := d.admin.DescribeGroups(ctx, id)
	if err != nil {
		return false, d.unreached("asking for the members of a group", err)
	}
	return len(groups[id].Members) > 0, nil
}

func (d *Driver) refuseConsumers(ctx context.Context, topic, group string) error {
	busy, err := d.consumers(ctx, topic, group)
	if err == nil && busy {
		err = driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q has consumers", group, topic), "stop them first", nil)
	}
	return err
}

// DeleteTopic removes a topic with everything that belongs to it.
func (d *Driver) DeleteTopic(ctx context.Context, topic string) error {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return err
	}
	groups := d.groupsOf(topic)
	for _, g := range groups {
		if err := d.refuseConsumers(ctx, topic, g); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := d.DeleteGroup(ctx, topic, g); err != nil {
			return err
		}
	}
	if err := d.endAllDelayed(ctx, topic); err != nil {
		return err
	}
	if err := d.putMeta(ctx, topicKey(topic), nil); err != nil {
		return err
	}
	if t.dead != nil {
		t.dead.close()
	}
	if t.invalid != nil {
		t.invalid.close()
	}
	d.mu.Lock()
	delete(d.topics, topic)
	d.mu.Unlock()
	return d.deleteTopics(ctx, d.mainTopic(topic), d.deadTopic(topic), d.invalidTopic(topic))
}

// EnsureGroup creates a group.
func (d *Driver) EnsureGroup(ctx context.Context, topic, group string, o driver.GroupOptions) error {
	if err := driver.CheckGroup(topic, group); err != nil {
		return err
	}
	if err := o.Check(d.caps); err != nil {
		return err
	}
	if err := d.mayStart(ctx, topic, group, o.Start); err != nil {
		return err
	}
	t, err := d.ensure(ctx, topic, topicRow{Implicit: true})
	if err != nil {
		return err
	}
	return d.ensureGroup(ctx, t, group, groupRow{Order: o.Order, Fixed: true}, o.Start)
}

// DeleteGroup removes a group with what it has not settled.
func (d *Driver) DeleteGroup(ctx context.Context, topic, group string) error {
	if err := driver.CheckGroup(topic, group); err != nil {
		return err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return err
	}
	var row groupRow
	if !d.metaRow(groupKey(topic, group), &row) {
		return errNoGroup(topic, group)
	}
	if err := d.refuseConsumers(ctx, topic, group); err != nil {
		return err
	}
	if err := d.endAllDead(ctx, t, group); err != nil {
		return err
	}
	if err := d.putMeta(ctx, groupKey(topic, group), nil); err != nil {
		return err
	}
	t.grouped.Store(false) // the next publish looks again
	t.forgetSide(group)
	if _, err := d.admin.DeleteGroups(ctx, d.groupID(topic, group)); err != nil {
		return unsure("the deletion", err)
	}
	return d.deleteTopics(ctx, d.sideTopic(topic, group))
}

// deleteTopics removes Kafka topics, and what the clients remember of them: the same name may come back.
func (d *Driver) deleteTopics(ctx context.Context, names ...string) error {
	_, err := d.admin.DeleteTopics(ctx, names...)
	for err == nil { // brokers hear of it a little later
		found, listed := d.admin.ListTopics(ctx, names...)
		left := listed == nil && slices.ContainsFunc(names, func(n string) bool { return found.Has(n) })
		if listed != nil || !left {
			break
		}
		err = pause(ctx, fetchWait/5)
	}
	d.client.PurgeTopicsFromClient(names...)
	d.reader.PurgeTopicsFromClient(names...)
	return unsure("the deletion", err)
}

// Pause stops deliveries of a topic, or of one group of it.
func (d *Driver) Pause(ctx context.Context, topic, group string, paused bool) error {
	if err := driver.CheckScope(topic, group); err != nil {
		return err
	}
	defer d.metaChanged() // before it returns, not a moment later
	t, err := d.existing(ctx, topic)
	if err != nil {
		return err
	}
	if group == "" {
		row := d.rowOf(t)
		row.Paused = paused
		if err := d.putMeta(ctx, topicKey(topic), row); err != nil {
			return err
		}
		return nil
	}
	var row groupRow
	if !d.metaRow(groupKey(topic, group), &row) {
		return errNoGroup(topic, group)
	}
	row.Paused = paused
	return d.putMeta(ctx, groupKey(topic, group), row)
}
