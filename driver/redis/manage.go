package redis

import (
	"cmp"
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
	t, err := d.topics.Ensure(ctx, name, c.Partitions)
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
	if c.Partitions != 0 && c.Partitions != len(t.Parts) {
		return driver.NewError(driver.ErrUnsupported,
			fmt.Sprintf("topic %q has %d shards, and keys would move if it had %d", name, len(t.Parts), c.Partitions),
			"drain the topic, then delete and create it with the other number", nil)
	}
	return d.configure(ctx, t, "", c)
}

// configure writes a configuration to every shard.
func (d *Driver) configure(ctx context.Context, t *topic, how string, c driver.TopicConfig) error {
	if c.Partitions != 0 && c.Partitions != len(t.Parts) {
		return errShards(t, len(t.Parts), c.Partitions)
	}
	args := append([]any{how, "", "partitions", c.Partitions}, redisshell.ConfigFields(c, len(t.Parts))...)
	for _, s := range t.Parts {
		if err := s.create(ctx); err != nil { // one that was not created before a crash
			return err
		}
		reply, err := s.consult(ctx, &d.scripts.configure, "", args...)
		if err != nil {
			return err
		}
		if reply.Text(0) == "differs" {
			fields, err := d.client.HGetAll(ctx, s.keys[keyTopic]).Result()
			if err != nil {
				return redisconn.Classify(err)
			}
			return redisshell.ErrConfigured(t.Name, configOf(fields), c)
		}
	}
	return nil
}

// Pause stops or resumes deliveries of a topic or of one group.
func (d *Driver) Pause(ctx context.Context, name, group string, paused bool) error {
	t, err := d.topics.Existing(ctx, name, driver.CheckScope(name, group))
	if err != nil {
		return err
	}
	return t.Each(func(s *shard) error {
		_, err := s.consult(ctx, &d.scripts.configure, group, "", "!", "paused", redisconn.Flag(paused))
		return err
	})
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (d *Driver) EnsureGroup(ctx context.Context, name, group string, o driver.GroupOptions) error {
	if err := cmp.Or(driver.CheckGroup(name, group), o.Check(d.caps)); err != nil {
		return err
	}
	_, err := d.joinAll(ctx, name, membership{group: group, order: o.Order, fixed: true})
	return err
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
		for _, s := range t.Parts {
			reply, err := s.overAll(ctx, &d.scripts.drop, nil, "", redisconn.Flag(look))
			if err != nil {
				return err
			}
			if reply.Text(0) == "members" {
				return errMembers("delete the topic", name, reply.Text(1), reply.Text(2))
			}
		}
	}
	d.scheduler.remove(t)
	for _, s := range t.Parts {
		s.learn("", "")
	}
	return d.topics.Remove(ctx, t)
}

func errMembers(what, topic, group, n string) error {
	return driver.NewError(driver.ErrConflict,
		fmt.Sprintf("cannot %s: group %q of topic %q has %s consumers", what, group, topic, n), "stop them first", nil)
}
