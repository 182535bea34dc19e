package redis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
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
	if err := driver.CheckName("topic", name); err != nil {
		return driver.TopicStats{}, err
	}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return driver.TopicStats{}, err
	}
	total := driver.TopicStats{Topic: name}
	for i, s := range t.shards {
		one, err := s.stats(ctx)
		if err != nil {
			return driver.TopicStats{}, err
		}
		if one == nil {
			return driver.TopicStats{}, d.gone(t)
		}
		if i == 0 {
			total = *one
			continue
		}
		addStats(&total, one)
	}
	slices.SortFunc(total.Groups, func(a, b driver.GroupStats) int {
		if a.Group < b.Group {
			return -1
		}
		return 1
	})
	return total, nil
}

func addStats(total, one *driver.TopicStats) {
	total.Published += one.Published
	total.Fanned += one.Fanned
	total.Expired += one.Expired
	total.Cancelled += one.Cancelled
	total.Delayed += one.Delayed
	total.Held += one.Held
	total.Invalid += one.Invalid
	total.Messages += one.Messages
	total.Bytes += one.Bytes
	for _, g := range one.Groups {
		i := slices.IndexFunc(total.Groups, func(x driver.GroupStats) bool { return x.Group == g.Group })
		if i < 0 {
			total.Groups = append(total.Groups, g)
			continue
		}
		x := &total.Groups[i]
		x.Received += g.Received
		x.Acked += g.Acked
		x.Dropped += g.Dropped
		x.Expired += g.Expired
		x.Cancelled += g.Cancelled
		x.Ready += g.Ready
		x.Inflight += g.Inflight
		x.Waiting += g.Waiting
		x.Dead += g.Dead
		x.Redelivered += g.Redelivered
		x.Retried += g.Retried
		x.Died += g.Died
		x.Oldest = max(x.Oldest, g.Oldest)
		x.Consumers = max(x.Consumers, g.Consumers) // a member is in every shard
	}
}

// stats reads all counters of a shard at one moment. It returns nil when the shard does not exist.
func (s *shard) stats(ctx context.Context) (*driver.TopicStats, error) {
	for range staleTries {
		g := s.groups()
		reply, err := s.d.run(ctx, &s.d.scripts.stats, s.statsKeys(g))
		if err != nil {
			return nil, err
		}
		now, f := serverTime(reply.Texts(0)), pairs(reply.Texts(1))
		if len(f) == 0 {
			return nil, nil
		}
		if f["epoch"] != g.epoch {
			s.learn(f["epoch"], f["groups"])
			continue
		}
		st := &driver.TopicStats{Topic: s.topic, Paused: f["paused"] == "1", Published: number(f, "published"),
			Fanned:  number(f, "fanned"),
			Expired: number(f, "expired"), Cancelled: number(f, "cancelled"), Messages: int64(number(f, "messages")),
			Bytes:   int64(number(f, "bytes")),
			Delayed: reply.Integer(2), Held: reply.Integer(3), Invalid: reply.Integer(4)}
		for i, name := range g.names {
			one, err := s.groupStats(ctx, name, g.keys[topicKeys+i*groupKeys:], reply.List(5+i), now)
			if err != nil {
				return nil, err
			}
			st.Groups = append(st.Groups, one)
		}
		return st, nil
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
	f := pairs(part.Texts(0))
	g := driver.GroupStats{Group: name, Paused: f["paused"] == "1", Received: number(f, "received"),
		Acked:   number(f, "acked"),
		Dropped: number(f, "dropped"), Expired: number(f, "expired"), Cancelled: number(f, "cancelled"),
		Inflight: int64(number(f, "inflight")), Waiting: int64(number(f, "waiting")), Dead: part.Integer(1),
		Redelivered: number(f, "redelivered"),
		Retried:     number(f, "retried"), Died: number(f, "graves")}
	if f["o"] == "1" {
		g.Order = driver.Relaxed
	}
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - g.Inflight - g.Waiting - g.Dead
	for _, until := range pairs(part.Texts(2)) {
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

// pairs returns a flat list of names and values as a map.
func pairs(flat []string) map[string]string {
	m := make(map[string]string, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		m[flat[i]] = flat[i+1]
	}
	return m
}

func number(fields map[string]string, name string) uint64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64)
	return uint64(max(0, n))
}
