package redis

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// configOf reads the configuration of a topic.
func configOf(f map[string]string) driver.TopicConfig {
	c := redisshell.ConfigOf(f)
	c.Partitions = min(int(redisshell.Whole(f, "partitions")), max(1, int(redisshell.Whole(f, "shards"))))
	return c
}

func checkConfig(topic string, c driver.TopicConfig) error {
	err := redisshell.CheckConfig(topic, c, "shard")
	if err == nil && (c.Keep > 0 || c.KeepMost > 0) {
		err = driver.NewError(driver.ErrUnsupported, "this driver keeps no settled messages",
			"leave Keep zero, or use the redisstream driver", nil)
	}
	return err
}

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	if err := checkConfig(name, c); err != nil {
		return err
	}
	t, err := d.ensure(ctx, name, c.Partitions)
	if err != nil {
		return err
	}
	return d.configure(ctx, t, "ensure", c)
}

// AlterTopic changes the configuration of a topic; the number of its shards stays.
func (d *Driver) AlterTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	t, err := d.topics.Existing(ctx, name, checkConfig(name, c))
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != len(t.shards) {
		return driver.NewError(driver.ErrUnsupported,
			fmt.Sprintf("topic %q has %d shards, and keys would move if it had %d", name, len(t.shards), c.Partitions),
			"drain the topic, then delete and create it with the other number", nil)
	}
	return d.configure(ctx, t, "topic", c)
}

// configure writes a configuration to every shard.
func (d *Driver) configure(ctx context.Context, t *topic, how string, c driver.TopicConfig) error {
	if c.Partitions != 0 && c.Partitions != len(t.shards) {
		return driver.NewError(driver.ErrConflict,
			fmt.Sprintf("topic %q has %d shards, not %d", t.name, len(t.shards), c.Partitions),
			"drain the topic, then delete and create it with the other number", nil)
	}
	for _, s := range t.shards {
		args := append([]any{s.of, how, "", "partitions", c.Partitions}, redisshell.ConfigFields(c, len(t.shards))...)
		reply, err := d.configureShard(ctx, t, s, args)
		if err != nil {
			return err
		}
		if reply.Text(0) == "differs" {
			fields, err := d.client.HGetAll(ctx, s.keys[keyTopic]).Result()
			if err != nil {
				return redisconn.Classify(err)
			}
			return redisshell.ErrConfigured(t.name, configOf(fields), c)
		}
	}
	return nil
}

// configureShard runs configure in one shard. One that was not created before a crash is created now.
func (d *Driver) configureShard(ctx context.Context, t *topic, s *shard, args []any) (redisconn.Reply, error) {
	for range 2 {
		reply, err := d.run(ctx, &d.scripts.configure, s.withGroup(driver.DefaultGroup), args...)
		if err != nil || reply.Text(0) != "stale" {
			return reply, err
		}
		if _, err := s.join(ctx, membership{}); err != nil {
			return nil, err
		}
	}
	return nil, d.gone(t)
}

// Pause stops or resumes deliveries of a topic or of one group.
func (d *Driver) Pause(ctx context.Context, name, group string, paused bool) error {
	t, err := d.topics.Existing(ctx, name, driver.CheckScope(name, group))
	if err != nil {
		return err
	}
	what, keys := "topic", driver.DefaultGroup
	if group != "" {
		what, keys = "group", group
	}
	for _, s := range t.shards {
		reply, err := d.run(ctx, &d.scripts.configure, s.withGroup(keys), s.of, what, "!", "paused", redisconn.Flag(paused))
		if err != nil {
			return err
		}
		if reply.Text(0) == "stale" {
			return d.staleGroup(ctx, t, group)
		}
	}
	return nil
}

// staleGroup says why a group was not found.
func (d *Driver) staleGroup(ctx context.Context, t *topic, group string) error {
	st, err := t.shards[0].stats(ctx)
	switch {
	case err != nil:
		return err
	case st == nil:
		return d.gone(t)
	}
	return t.noGroup(group, t.shards[0].groups().names)
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (d *Driver) EnsureGroup(ctx context.Context, name, group string, o driver.GroupOptions) error {
	if err := driver.CheckGroup(name, group); err != nil {
		return err
	}
	if err := o.Check(d.caps); err != nil {
		return err
	}
	t, err := d.ensure(ctx, name, 0)
	if err != nil {
		return err
	}
	for _, s := range t.shards {
		if _, err := s.join(ctx, membership{group: group, order: o.Order, fixed: true}); err != nil {
			return err
		}
	}
	return nil
}

// Reset is refused: nothing is kept to go back to.
func (d *Driver) Reset(ctx context.Context, topic, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	_, err := d.topics.Existing(ctx, topic, o.Check(topic, group))
	if err == nil {
		err = driver.NewError(driver.ErrUnsupported, "redis keeps no history",
			"start at the end, or use the redisstream driver", nil)
	}
	return driver.ResetReport{}, err
}

// DeleteTopic removes a topic with everything in it.
func (d *Driver) DeleteTopic(ctx context.Context, name string) error {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return err
	}
	for _, look := range []bool{true, false} {
		for _, s := range t.shards {
			reply, err := s.overAll(ctx, &d.scripts.drop, func(*groups) []any { return []any{redisconn.Flag(look)} })
			if err != nil {
				return err
			}
			if reply.Text(0) == "members" {
				return errMembers("delete the topic", name, reply.Text(1), reply.Text(2))
			}
		}
	}
	d.scheduler.remove(t)
	for _, s := range t.shards {
		s.learn("", "")
	}
	return d.topics.Remove(ctx, t)
}

func errMembers(what, topic, group, n string) error {
	return driver.NewError(driver.ErrConflict,
		fmt.Sprintf("cannot %s: group %q of topic %q has %s consumers", what, group, topic, n), "stop them first", nil)
}
