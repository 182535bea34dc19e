package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// purgeAtOnce is how many sequence numbers one script looks at.
const purgeAtOnce = 100

// Purge removes what is ready, waiting or delayed now, in small steps, up to what was published last when it began.
func (d *Driver) Purge(ctx context.Context, name, group string) (int, error) {
	t, err := d.topics.Existing(ctx, name, driver.CheckScope(name, group))
	if err != nil {
		return 0, err
	}
	total := 0
	for _, s := range t.Parts {
		n, err := s.purge(ctx, group, false)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// purge calls the script until it has seen all sequence numbers. Of a group that is being deleted it removes
// everything.
func (s *shard) purge(ctx context.Context, group string, deleted bool) (total int, err error) {
	upto, err := s.d.client.HGet(ctx, s.keys[keyTopic], "seq").Result()
	if err != nil && !isNil(err) {
		return 0, redisconn.Classify(err)
	}
	var more []string
	if deleted {
		more = keysOfGroup(s.tag, group)
	}
	for after := "0"; after != ""; {
		reply, err := s.change(ctx, &s.d.scripts.purge, more, group, after, upto, purgeAtOnce, redisconn.Flag(deleted))
		if err != nil {
			return total, err
		}
		total += int(reply.Number(2))
		after = reply.Text(1)
	}
	return total, nil
}

// DeleteGroup removes a group with what it has not settled. Interrupted, it is done by deleting the group again.
func (d *Driver) DeleteGroup(ctx context.Context, name, group string) error {
	t, err := d.topics.Existing(ctx, name, driver.CheckGroup(name, group))
	if err != nil {
		return err
	}
	for _, s := range t.Parts {
		reply, err := d.run(ctx, &d.scripts.ungroup, s.withGroup(group), s.of, group, "begin")
		if err != nil {
			return err
		}
		switch reply.Text(0) {
		case "members":
			return errMembers("delete the group", name, group, reply.Text(1))
		case "missing":
			if _, err := s.consult(ctx, &d.scripts.stats, ""); err != nil { // now the groups are known
				return err
			}
			return redisshell.NoGroup(name, group, s.groups().names)
		}
		s.learn(reply.Text(1), reply.Text(2))
		if _, err := s.purge(ctx, group, true); err != nil {
			return err
		}
		if _, err := d.run(ctx, &d.scripts.ungroup, s.withGroup(group), s.of, group, "end"); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes single messages.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	return redisshell.Each(ts, func(target *driver.Target) error {
		s, seq, err := d.target(ctx, *target)
		if err != nil {
			return err
		}
		reply, err := s.change(ctx, &d.scripts.del, nil, target.Group, seq, target.Death)
		if err != nil {
			return err
		}
		return redisshell.ErrUnchanged(*target, reply.Text(0))
	})
}
