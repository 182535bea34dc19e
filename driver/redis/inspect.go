package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	goredis "github.com/redis/go-redis/v9"
)

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	if err := d.shell.Refuse(); err != nil {
		return nil, err
	}
	names, err := d.topics.Names(ctx, names...)
	if err != nil {
		return nil, err
	}
	topics := make([]*topic, 0, len(names))
	for _, name := range names {
		t, err := d.topics.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if t != nil {
			topics = append(topics, t)
		}
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
	for range staleTries {
		g := s.groups()
		reply, err := s.d.run(ctx, &s.d.scripts.stats, s.statsKeys(g))
		if err != nil {
			return nil, err
		}
		now, f := serverTime(reply.Texts(0)), reply.List(1).Map()
		if len(f) == 0 {
			return nil, nil
		}
		if f["epoch"] != g.epoch {
			s.learn(f["epoch"], f["groups"])
			continue
		}
		st := redisshell.TopicCounts(s.topic, f)
		st.Delayed, st.Held, st.Invalid = reply.Integer(2), reply.Integer(3), reply.Integer(4)
		for i, name := range g.names {
			one, err := s.groupStats(ctx, name, g.keys[topicKeys+i*groupKeys:], reply.List(5+i), now)
			if err != nil {
				return nil, err
			}
			st.Groups = append(st.Groups, one)
		}
		return &st, nil
	}
	return nil, driver.NewError(driver.ErrNotApplied, "the groups of the topic keep changing", "try again", nil)
}

// statsKeys returns the keys in the order of lua/stats.lua.
func (s *shard) statsKeys(g *groups) []string {
	keys := []string{s.keys[keyTopic], s.keys[keyDelayed], s.keys[keyHeld], s.keys[keyInvalid]}
	for i := range g.names {
		of := g.keys[topicKeys+i*groupKeys:]
		keys = append(keys, of[keyGroup], of[keyDead], of[keyMembers])
		keys = append(append(keys, of[keyLane:keyLane+4]...), of[keyBack:keyBack+4]...)
	}
	return keys
}

// groupStats makes the statistics of one group of its part of the answer.
func (s *shard) groupStats(ctx context.Context, name string, keys []string, part redisconn.Reply,
	now time.Time) (driver.GroupStats, error) {
	f := part.List(0).Map()
	g := redisshell.GroupCounts(name, f, int64(redisshell.Counted(f, "inflight")),
		int64(redisshell.Counted(f, "waiting")), part.Integer(1))
	if f["o"] == "1" {
		g.Order = driver.Relaxed
	}
	for _, until := range part.List(2).Map() {
		if score, err := strconv.ParseFloat(until, 64); err == nil && score > float64(now.UnixMilli()) {
			g.Consumers++
		}
	}
	for _, head := range part.Texts(3) {
		if it, ok := parseItem(head); ok {
			g.Oldest = max(g.Oldest, now.Sub(it.since))
		}
	}
	if g.Ready == 0 || g.Inflight+g.Waiting == 0 {
		return g, nil
	}
	behind, err := s.oldestBehind(ctx, keys, now)
	g.Oldest = max(g.Oldest, behind)
	return g, err
}

// serverTime reads the answer of TIME: seconds and microseconds.
func serverTime(parts []string) time.Time {
	if len(parts) != 2 {
		return time.Now()
	}
	seconds, _ := strconv.ParseInt(parts[0], 10, 64)
	micros, _ := strconv.ParseInt(parts[1], 10, 64)
	return time.Unix(seconds, micros*1000)
}
