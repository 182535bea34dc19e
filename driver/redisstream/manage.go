package redisstream

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// configOf reads the configuration of a topic.
func configOf(f map[string]string) driver.TopicConfig {
	c := redisshell.ConfigOf(f)
	c.Keep, c.Partitions = time.Duration(redisshell.Whole(f, "keep_ns")), int(redisshell.Whole(f, "asked"))
	return c
}

func checkConfig(topic string, c driver.TopicConfig) error {
	err := redisshell.CheckConfig(topic, c, "partition")
	if err == nil && c.KeepMost > 0 {
		err = driver.NewError(driver.ErrUnsupported, "this driver keeps settled messages by time only",
			"set Keep, and leave KeepMost zero", nil)
	}
	return err
}

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	if err := checkConfig(name, c); err != nil {
		return err
	}
	_, err := d.topics.With(ctx, name, c.Partitions, func(t *topic) error {
		if c.Partitions != 0 && c.Partitions != len(t.Parts) {
			return d.otherPartitions(driver.ErrConflict, t, c.Partitions, "is asked for with another number")
		}
		err := d.configure(ctx, t, "ensure", c)
		if errors.Is(err, driver.ErrNotFound) {
			return redisshell.ErrStale
		}
		return err
	})
	return err
}

// AlterTopic changes the configuration of a topic; the number of its partitions only when there is nothing in it.
func (d *Driver) AlterTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	t, err := d.topics.Existing(ctx, name, checkConfig(name, c))
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != len(t.Parts) {
		if t, err = d.repartition(ctx, t, c.Partitions); err != nil {
			return err
		}
	} else if err := d.reopen(ctx, t); err != nil { // after a change of the number that was given up
		return err
	}
	return d.configure(ctx, t, "", c)
}

// configure writes a configuration to every partition.
func (d *Driver) configure(ctx context.Context, t *topic, how string, c driver.TopicConfig) error {
	args := append([]any{how, "keep", redisconn.Milliseconds(c.Keep), "keep_ns", int64(c.Keep), "asked", c.Partitions},
		redisshell.ConfigFields(c, len(t.Parts))...)
	replies, err := consultAll(ctx, t, &d.scripts.configure, "", args...)
	if err != nil {
		return err
	}
	if replies[0].Text(0) != "differs" {
		return nil
	}
	f, err := d.client.HGetAll(ctx, t.Parts[0].key).Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	return redisshell.ErrConfigured(t.Name, configOf(f), c)
}

// Pause stops or resumes deliveries of a topic or of one group.
func (d *Driver) Pause(ctx context.Context, name, group string, paused bool) error {
	t, err := d.topics.Existing(ctx, name, driver.CheckScope(name, group))
	if err != nil {
		return err
	}
	_, err = consultAll(ctx, t, &d.scripts.configure, group, "", "paused", redisconn.Flag(paused))
	return err
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (d *Driver) EnsureGroup(ctx context.Context, name, group string, o driver.GroupOptions) error {
	if err := cmp.Or(driver.CheckGroup(name, group), o.Check(d.caps)); err != nil {
		return err
	}
	_, err := d.joinAll(ctx, name, membership{group: group, order: strconv.Itoa(int(o.Order)), start: o.Start})
	return err
}

// DeleteGroup removes a group with what it has not settled.
func (d *Driver) DeleteGroup(ctx context.Context, name, group string) error {
	t, err := d.topics.Existing(ctx, name, driver.CheckGroup(name, group))
	if err != nil {
		return err
	}
	_, err = consultAll(ctx, t, &d.scripts.ungroup, group, "1", "")
	for _, p := range t.Parts {
		if err != nil {
			return err
		}
		err = p.sweep(ctx, &d.scripts.ungroup, group, 1, func(redisconn.Reply) {}, "0")
	}
	return err
}

// sweep calls a script again and again until it has worked through a partition: it is given a cursor as its last
// argument, and answers with the next one.
func (p *partition) sweep(ctx context.Context, s *script, group string, cursorAt int,
	each func(reply redisconn.Reply), args ...any) error {
	for cursor := ""; ; {
		reply, err := p.consult(ctx, s, group, append(args[:len(args):len(args)], cursor)...)
		if err != nil {
			return err
		}
		each(reply)
		if cursor = reply.Text(cursorAt); cursor == "" {
			return nil
		}
	}
}

// DeleteTopic removes a topic with everything in it.
func (d *Driver) DeleteTopic(ctx context.Context, name string) error {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return err
	}
	for _, look := range []bool{true, false} {
		if _, err := consultAll(ctx, t, &d.scripts.drop, "", redisconn.Flag(look)); err != nil {
			return err
		}
	}
	return d.topics.Remove(ctx, t)
}

// Purge removes what is ready, waiting or delayed.
func (d *Driver) Purge(ctx context.Context, name, group string) (int, error) {
	t, err := d.topics.Existing(ctx, name, driver.CheckScope(name, group))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, p := range t.Parts {
		err := p.sweep(ctx, &d.scripts.purge, group, 2, func(reply redisconn.Reply) { total += int(reply.Number(1)) })
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
