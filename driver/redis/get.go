package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// find returns the shard and the sequence number of the message that a target names; "" if there is none.
func (t *topic) find(ctx context.Context, target driver.Target) (*shard, string, error) {
	if !target.Ref.IsZero() {
		if target.Ref.Sub != 0 || int(target.Ref.Partition) >= len(t.shards) || target.Ref.Partition < 0 {
			return t.shards[0], "", nil
		}
		return t.shards[target.Ref.Partition], strconv.FormatUint(target.Ref.Pos, 10), nil
	}
	for _, s := range t.shards {
		entry, err := s.d.client.HGet(ctx, s.keys[keyIDs], indexID(target.ID)).Result()
		if isNil(err) {
			continue
		}
		if err != nil {
			return nil, "", redisconn.Classify(err)
		}
		it, _ := parseItem(entry)
		return s, it.seq, nil
	}
	return t.shards[0], "", nil
}

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	if err := target.Check(); err != nil {
		return nil, err
	}
	t, s, seq, err := d.target(ctx, target)
	if err != nil {
		return nil, err
	}
	return d.entries(ctx, t, s, seq, target)
}

// entries returns a message of a shard as the groups see it that a target means. There is at least one.
func (d *Driver) entries(ctx context.Context, t *topic, s *shard, seq string,
	target driver.Target) (entries []driver.Entry, err error) {
	reply, err := s.overAll(ctx, &d.scripts.get, func(g *groups) []any { return []any{offsetText(g, target.Group), seq} })
	if err != nil {
		return nil, err
	}
	if reply == nil {
		return nil, d.gone(t)
	}
	for _, v := range reply.List(1) {
		entries = append(entries, s.entry(redisconn.ReplyOf(v)))
	}
	if len(entries) == 0 {
		return nil, d.verdict(t, s, target, "missing")
	}
	slices.SortFunc(entries, func(a, b driver.Entry) int { return strings.Compare(a.Group, b.Group) })
	return entries, nil
}

// target finds a message for a call that is about it.
func (d *Driver) target(ctx context.Context, target driver.Target) (*topic, *shard, string, error) {
	t, err := d.topics.Existing(ctx, target.Topic)
	if err != nil {
		return nil, nil, "", err
	}
	s, seq, err := t.find(ctx, target)
	if err == nil && seq == "" {
		err = redisshell.NoMessage(target)
	}
	return t, s, seq, err
}

// verdict turns the answer of a script about one message into an error.
func (d *Driver) verdict(t *topic, s *shard, target driver.Target, answer string) error {
	if known, err := redisshell.Verdict(target, answer); known {
		return err
	}
	switch names := s.groups().names; {
	case answer == "":
		return d.gone(t)
	case answer == "missing" && target.Group != "" && !slices.Contains(names, target.Group):
		return t.noGroup(target.Group, names)
	case answer == "missing":
		return redisshell.NoMessage(target)
	}
	return redisconn.Reply{answer}.ErrShape("a change of one message")
}
