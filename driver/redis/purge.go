package redis

import (
	"context"
	"slices"
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// purgeAtOnce is how many sequence numbers one script looks at.
const purgeAtOnce = 100

// Purge removes what is ready, waiting or delayed now, in small steps, up to what was published last when it began.
func (d *Driver) Purge(ctx context.Context, name, group string) (int, error) {
	if err := driver.CheckScope(name, group); err != nil {
		return 0, err
	}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, s := range t.shards {
		n, err := d.purgeShard(ctx, t, s, group)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (d *Driver) purgeShard(ctx context.Context, t *topic, s *shard, group string) (int, error) {
	st, err := s.stats(ctx) // so that the groups are known
	if err != nil {
		return 0, err
	}
	if st == nil {
		return 0, d.gone(t)
	}
	if g := s.groups(); group != "" && !slices.Contains(g.names, group) {
		return 0, t.noGroup(group, g.names)
	}
	upto, err := d.client.HGet(ctx, s.keys[keyTopic], "seq").Result()
	if err != nil {
		return 0, redisconn.Classify(err)
	}
	return s.sweep(ctx, upto, func(g *groups, after string) ([]string, []any) {
		at := ""
		if group != "" {
			o, ok := g.offset(group)
			if !ok {
				return nil, nil
			}
			at = strconv.Itoa(o)
		}
		return g.keys, []any{at, after, upto, purgeAtOnce, "0"}
	})
}

// sweep calls the purge script until it has seen all sequence numbers.
func (s *shard) sweep(ctx context.Context, upto string,
	call func(g *groups, after string) ([]string, []any)) (int, error) {
	total, after, stale := 0, "0", 0
	for after != "" && stale < staleTries {
		g := s.groups()
		keys, args := call(g, after)
		if keys == nil {
			return total, nil // the group is gone
		}
		r := s.d.requests.take()
		reply, err := s.d.run(ctx, &s.d.scripts.purge, keys, append([]any{s.of, g.epoch, r.name()}, args...)...)
		s.d.requests.giveBack(r)
		if err != nil {
			return total, err
		}
		if reply.Text(0) == "stale" {
			if reply.Text(1) != s.of {
				return total, nil
			}
			s.learn(reply.Text(2), reply.Text(3))
			stale++
			continue
		}
		n, _ := strconv.Atoi(reply.Text(2))
		total += n
		after, stale = reply.Text(1), 0
	}
	return total, nil
}

// DeleteGroup removes a group with what it has not settled. Interrupted, it is done by deleting the group again.
func (d *Driver) DeleteGroup(ctx context.Context, name, group string) error {
	if err := driver.CheckGroup(name, group); err != nil {
		return err
	}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return err
	}
	for _, s := range t.shards {
		reply, err := d.run(ctx, &d.scripts.ungroup, s.withGroup(group), s.of, group, "begin")
		if err != nil {
			return err
		}
		switch reply.Text(0) {
		case "members":
			return errMembers("delete the group", name, group, reply.Text(1))
		case "missing":
			return d.staleGroup(ctx, t, group)
		}
		s.learn(reply.Text(1), reply.Text(2))
		if err := s.erase(ctx, group); err != nil {
			return err
		}
		if _, err := d.run(ctx, &d.scripts.ungroup, s.withGroup(group), s.of, group, "end"); err != nil {
			return err
		}
	}
	return nil
}

// erase removes everything that a group which is being deleted has not settled.
func (s *shard) erase(ctx context.Context, group string) error {
	upto, err := s.d.client.HGet(ctx, s.keys[keyTopic], "seq").Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	_, err = s.sweep(ctx, upto, func(g *groups, after string) ([]string, []any) {
		keys := append(slices.Clone(g.keys), keysOfGroup(s.tag, group)...)
		return keys, []any{topicKeys + len(g.names)*groupKeys, after, upto, purgeAtOnce, "1"}
	})
	return err
}

// Delete removes single messages.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	for i, target := range ts {
		errs[i] = d.deleteOne(ctx, target)
	}
	return errs
}

func (d *Driver) deleteOne(ctx context.Context, target driver.Target) error {
	if err := target.Check(); err != nil {
		return err
	}
	t, s, seq, err := d.target(ctx, target)
	if err != nil {
		return err
	}
	r := d.requests.take()
	defer d.requests.giveBack(r)
	request := r.name()
	reply, err := s.overAll(ctx, &d.scripts.del, func(g *groups) []any {
		return []any{request, seq, offsetText(g, target.Group), strconv.Itoa(target.Death)}
	})
	if err != nil {
		return err
	}
	return d.verdict(t, s, target, reply.Text(0))
}

// offsetText tells a script which group is meant; one that does not exist is beyond all.
func offsetText(g *groups, name string) string {
	if name == "" {
		return ""
	}
	o, ok := g.offset(name)
	if !ok {
		o = topicKeys + len(g.names)*groupKeys
	}
	return strconv.Itoa(o)
}
