package redisstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// configOf reads the configuration of a topic.
func configOf(f map[string]string) driver.TopicConfig {
	return driver.TopicConfig{MaxMessages: whole(f, "all_messages"), MaxBytes: whole(f, "all_bytes"), Keep: time.Duration(whole(f, "keep_ns")),
		ExpiredDead: f["expired_dead"] == "1", Partitions: int(whole(f, "asked"))}
}

// configFields writes the configuration of a topic. A bound is divided among the partitions, rounded up.
func configFields(c driver.TopicConfig, partitions int) []any {
	part := func(n int64) int64 { return (n + int64(partitions) - 1) / int64(partitions) }
	return []any{"all_messages", c.MaxMessages, "all_bytes", c.MaxBytes, "max_messages", part(c.MaxMessages), "max_bytes", part(c.MaxBytes),
		"keep", milliseconds(c.Keep), "keep_ns", int64(c.Keep), "expired_dead", flag(c.ExpiredDead), "asked", c.Partitions, "configured", "1"}
}

func checkConfig(c driver.TopicConfig) error {
	switch {
	case c.MaxMessages < 0 || c.MaxBytes < 0 || c.Keep < 0 || c.Partitions < 0:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("topic configuration %+v contains a negative value", c), "use zero for no bound", nil)
	case c.Partitions > maxPartitions:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%d partitions are too many", c.Partitions), "use at most 1024", nil)
	}
	return nil
}

// EnsureTopic creates a topic with this configuration.
func (d *Driver) EnsureTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	if err := d.open(); err != nil {
		return err
	}
	if err := driver.CheckName("topic", name); err != nil {
		return err
	}
	if err := checkConfig(c); err != nil {
		return err
	}
	for range staleTries {
		t, err := d.ensure(ctx, name, c.Partitions)
		if err != nil {
			return err
		}
		if c.Partitions != 0 && c.Partitions != len(t.parts) {
			return d.otherPartitions(driver.ErrConflict, t, c)
		}
		if err = d.configure(ctx, t, "ensure", c); !errors.Is(err, driver.ErrNotFound) {
			return err
		}
		if _, err := d.remake(ctx, t); err != nil {
			return err
		}
	}
	return errStale
}

func (d *Driver) otherPartitions(kind error, t *topic, c driver.TopicConfig) error {
	return driver.NewError(kind, fmt.Sprintf("topic %q has %d partitions, and keys would move if it had %d", t.name, len(t.parts), c.Partitions),
		"drain the topic, then delete and create it with the other number", nil)
}

// AlterTopic changes the configuration of a topic; the number of its partitions stays.
func (d *Driver) AlterTopic(ctx context.Context, name string, c driver.TopicConfig) error {
	if err := checkConfig(c); err != nil {
		return err
	}
	t, err := d.existing(ctx, name)
	if err != nil {
		return err
	}
	if c.Partitions != 0 && c.Partitions != len(t.parts) {
		return d.otherPartitions(driver.ErrUnsupported, t, c)
	}
	return d.configure(ctx, t, "topic", c)
}

// configure writes a configuration to every partition.
func (d *Driver) configure(ctx context.Context, t *topic, how string, c driver.TopicConfig) error {
	replies, err := d.each(ctx, t, &d.scripts.configure, "", append([]any{how, ""}, configFields(c, len(t.parts))...)...)
	if err != nil {
		return err
	}
	if text(replies[0], 0) != "differs" {
		return nil
	}
	f, err := d.client.HGetAll(ctx, t.parts[0].key).Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q is configured as %+v, not %+v", t.name, configOf(f), c), "use AlterTopic to change it", nil)
}

// Pause stops or resumes deliveries of a topic or of one group.
func (d *Driver) Pause(ctx context.Context, name, group string, paused bool) error {
	t, err := d.existing(ctx, name)
	if err != nil {
		return err
	}
	what := "topic"
	if group != "" {
		what = "group"
	}
	_, err = d.each(ctx, t, &d.scripts.configure, group, what, group, "paused", flag(paused))
	return err
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (d *Driver) EnsureGroup(ctx context.Context, name, group string, o driver.GroupOptions) error {
	if err := d.open(); err != nil {
		return err
	}
	if err := driver.CheckName("group", group); err != nil {
		return err
	}
	_, err := d.joinAll(ctx, name, membership{group: group, order: strconv.Itoa(int(o.Order)), start: positionText(o.Start)})
	return err
}

// DeleteGroup removes a group with what it has not settled.
func (d *Driver) DeleteGroup(ctx context.Context, name, group string) error {
	t, err := d.existing(ctx, name)
	if err != nil {
		return err
	}
	for _, look := range []bool{true, false} {
		replies, err := d.each(ctx, t, &d.scripts.ungroup, group, group, flag(look))
		if err != nil {
			return err
		}
		if err := membersIn(replies, "delete the group"); err != nil {
			return err
		}
	}
	return nil
}

// membersIn says that something cannot be done because there are consumers.
func membersIn(replies [][]any, what string) error {
	for _, r := range replies {
		if text(r, 0) == "members" {
			return driver.NewError(driver.ErrConflict, "cannot "+what+": it has consumers", "stop them first", nil)
		}
	}
	return nil
}

// DeleteTopic removes a topic with everything in it.
func (d *Driver) DeleteTopic(ctx context.Context, name string) error {
	t, err := d.existing(ctx, name)
	if err != nil {
		return err
	}
	for _, look := range []bool{true, false} {
		replies, err := d.each(ctx, t, &d.scripts.drop, "", flag(look))
		if err != nil {
			return err
		}
		if err := membersIn(replies, "delete the topic"); err != nil {
			return err
		}
	}
	d.forget(t)
	return redisconn.Classify(d.client.HDel(ctx, registryKey(d.o.Prefix), name).Err())
}

// Purge removes what is ready, waiting or delayed.
func (d *Driver) Purge(ctx context.Context, name, group string) (int, error) {
	t, err := d.existing(ctx, name)
	if err != nil {
		return 0, err
	}
	replies, err := d.each(ctx, t, &d.scripts.purge, group, group)
	total := 0
	for _, r := range replies {
		n, _ := strconv.Atoi(text(r, 1))
		total += n
	}
	return total, err
}

// Reset makes a group start again from a position.
func (d *Driver) Reset(ctx context.Context, name, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	report := driver.ResetReport{}
	t, err := d.existing(ctx, name)
	if err != nil {
		return report, err
	}
	for _, look := range []bool{true, false} {
		for _, p := range t.parts {
			to := o.To
			if to.From == driver.FromRef && int(to.Ref.Partition) != p.index { // elsewhere, from the same time on
				to = driver.Position{From: driver.FromTime, Time: time.UnixMilli(int64(to.Ref.Pos))}
			}
			one := &topic{name: t.name, parts: []*partition{p}}
			replies, err := d.each(ctx, one, &d.scripts.reset, group, group, positionText(to), flag(o.DryRun), flag(o.Force), flag(look))
			if err != nil {
				return report, err
			}
			if err := membersIn(replies, "reset the group"); err != nil {
				return report, err
			}
			replayed, _ := strconv.Atoi(text(replies[0], 1))
			skipped, _ := strconv.Atoi(text(replies[0], 2))
			report.Replayed += replayed
			report.Skipped += skipped
		}
	}
	return report, nil
}
