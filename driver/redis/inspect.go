package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	goredis "github.com/redis/go-redis/v9"
)

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	topics, err := d.topics.All(ctx, names...)
	if err != nil {
		return nil, err
	}
	return d.infos(ctx, topics)
}

// infos asks for all topics at once.
func (d *Driver) infos(ctx context.Context, topics []*topic) (infos []driver.TopicInfo, err error) {
	cmds := make([]*goredis.MapStringStringCmd, len(topics))
	_, err = d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, t := range topics {
			cmds[i] = p.HGetAll(ctx, t.shards[0].keys[keyTopic])
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
		g := t.shards[0].groups()
		if g.epoch != fields["epoch"] {
			g = t.shards[0].learn(fields["epoch"], fields["groups"])
		}
		infos = append(infos, driver.TopicInfo{Topic: t.name, Config: configOf(fields), Paused: fields["paused"] == "1",
			Groups: sortedNames(g.names)})
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
	for _, s := range t.shards {
		one, err := s.stats(ctx)
		if err != nil {
			return driver.TopicStats{}, err
		}
		if one == nil {
			return driver.TopicStats{}, d.gone(t)
		}
		redisshell.AddCounts(&total, *one)
	}
	return total, nil
}

// stats reads all counters of a shard at one moment. It returns nil when the shard does not exist.
func (s *shard) stats(ctx context.Context) (*driver.TopicStats, error) {
	reply, err := s.overAll(ctx, &s.d.scripts.stats, func(*groups) []any { return nil })
	if err != nil || reply == nil {
		return nil, err
	}
	st := redisshell.CountsOf(s.topic, reply)
	return &st, nil
}
