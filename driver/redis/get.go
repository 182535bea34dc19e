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

// Get returns a message as every group sees it that the target means.
func (d *Driver) Get(ctx context.Context, target driver.Target) (entries []driver.Entry, err error) {
	s, seq, err := d.target(ctx, target)
	if err != nil {
		return nil, err
	}
	reply, err := s.consult(ctx, &d.scripts.get, target.Group, seq)
	if err != nil {
		return nil, err
	}
	for _, v := range reply.List(1) {
		entries = append(entries, s.entry(redisconn.ReplyOf(v)))
	}
	if len(entries) == 0 {
		return nil, redisshell.NoMessage(target)
	}
	slices.SortFunc(entries, func(a, b driver.Entry) int { return strings.Compare(a.Group, b.Group) })
	return entries, nil
}

// target finds the message that a call is about: its shard and its sequence number.
func (d *Driver) target(ctx context.Context, target driver.Target) (*shard, string, error) {
	t, err := d.topics.Existing(ctx, target.Topic, target.Check())
	if err != nil {
		return nil, "", err
	}
	if r := target.Ref; !r.IsZero() {
		if r.Sub != 0 || r.Partition < 0 || int(r.Partition) >= len(t.Parts) {
			return nil, "", redisshell.NoMessage(target)
		}
		return t.Parts[r.Partition], strconv.FormatUint(r.Pos, 10), nil
	}
	for _, s := range t.Parts {
		entry, err := d.client.HGet(ctx, s.keys[keyIDs], indexID(target.ID)).Result()
		if err != nil && !isNil(err) {
			return nil, "", redisconn.Classify(err)
		}
		if it, ok := parseItem(entry); ok {
			return s, it.seq, nil
		}
	}
	return nil, "", redisshell.NoMessage(target)
}
