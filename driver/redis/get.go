package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
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
	t, err := d.topics.Existing(ctx, target.Topic)
	if err != nil {
		return nil, err
	}
	s, seq, err := t.find(ctx, target)
	if err != nil {
		return nil, err
	}
	if seq == "" {
		return nil, t.noMessage(target)
	}
	if e, ok, err := s.invalidEntry(ctx, seq); err != nil || ok {
		return []driver.Entry{e}, err
	}
	v, err := s.load(ctx, []string{seq}, nil)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, d.gone(t)
	}
	if e, ok := v.ofTopic(seq); ok {
		return []driver.Entry{e}, nil
	}
	var entries []driver.Entry
	for i, name := range v.g.names {
		if target.Group != "" && target.Group != name {
			continue
		}
		if e, ok := v.ofGroup(seq, i); ok {
			entries = append(entries, e)
		}
	}
	if len(entries) > 0 {
		slices.SortFunc(entries, func(a, b driver.Entry) int { return strings.Compare(a.Group, b.Group) })
		return entries, nil
	}
	if target.Group != "" && !slices.Contains(v.g.names, target.Group) {
		return nil, t.noGroup(target.Group, v.g.names)
	}
	return nil, t.noMessage(target)
}

// invalidEntry returns an entry that could not be decoded.
func (s *shard) invalidEntry(ctx context.Context, seq string) (driver.Entry, bool, error) {
	raw, err := s.d.client.HGet(ctx, s.keys[keyRaw], seq).Result()
	if isNil(err) {
		return driver.Entry{}, false, nil
	}
	if err != nil {
		return driver.Entry{}, false, redisconn.Classify(err)
	}
	problem, err := s.d.client.HGet(ctx, s.keys[keyProblems], seq).Result()
	if err != nil && !isNil(err) {
		return driver.Entry{}, false, redisconn.Classify(err)
	}
	n, _ := strconv.ParseUint(seq, 10, 64)
	e := driver.Entry{Ref: s.ref(n), State: driver.StateInvalid, Raw: []byte(raw), Problem: problem}
	if at, rest, ok := strings.Cut(problem, "\n"); ok {
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			e.FoundAt, e.Problem = time.UnixMilli(ms), rest
		}
	}
	return e, true, nil
}

func (t *topic) noMessage(target driver.Target) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q has no message %s", t.name, describe(target)),
		"it was settled or removed", nil)
}

func describe(target driver.Target) string {
	if !target.Ref.IsZero() {
		return target.Ref.String()
	}
	return fmt.Sprintf("%q", target.ID)
}
