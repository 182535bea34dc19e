package redis

import (
	"context"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	goredis "github.com/redis/go-redis/v9"
)

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context, names ...string) (infos []driver.TopicInfo, err error) {
	topics, err := d.topics.All(ctx, names...)
	if err != nil {
		return nil, err
	}
	cmds := make([]*goredis.MapStringStringCmd, len(topics))
	_, err = d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, t := range topics {
			cmds[i] = p.HGetAll(ctx, t.Parts[0].keys[keyTopic])
		}
		return nil
	})
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	for i, t := range topics {
		fields := cmds[i].Val()
		if len(fields) == 0 {
			continue // registered, and not created yet
		}
		infos = append(infos, driver.TopicInfo{Topic: t.Name, Config: configOf(fields), Paused: fields["paused"] == "1",
			Groups: slices.Sorted(strings.FieldsSeq(fields["groups"]))})
	}
	return infos, nil
}

// Stats adds up the shards.
func (d *Driver) Stats(ctx context.Context, name string) (driver.TopicStats, error) {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return driver.TopicStats{}, err
	}
	total := driver.TopicStats{Topic: name}
	for _, s := range t.Parts {
		reply, err := s.consult(ctx, &d.scripts.stats, "") // all counters of a shard at one moment
		if err != nil {
			return driver.TopicStats{}, err
		}
		redisshell.AddCounts(&total, reply)
	}
	return total, nil
}
