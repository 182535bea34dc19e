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

// topicNames returns the names in the registry, in order.
func (d *Driver) topicNames(ctx context.Context) ([]string, error) {
	names, err := d.client.HKeys(ctx, registryKey(d.o.Prefix)).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	slices.Sort(names)
	return names, nil
}

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context) ([]driver.TopicInfo, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	names, err := d.topicNames(ctx)
	if err != nil {
		return nil, err
	}
	var infos []driver.TopicInfo
	for _, name := range names {
		t, err := d.lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		fields, err := d.client.HGetAll(ctx, t.shards[0].keys[keyTopic]).Result()
		if err != nil {
			return nil, redisconn.Classify(err)
		}
		if len(fields) == 0 {
			continue // registered, and not created yet
		}
		g := t.shards[0].learn(fields["epoch"], fields["groups"])
		infos = append(infos, driver.TopicInfo{Topic: name, Config: configOf(fields), Paused: fields["paused"] == "1", Groups: sortedNames(g.names)})
	}
	return infos, nil
}

// Stats adds up the shards.
func (d *Driver) Stats(ctx context.Context, name string) (driver.TopicStats, error) {
	if err := driver.CheckName("topic", name); err != nil {
		return driver.TopicStats{}, err
	}
	t, err := d.existing(ctx, name)
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

// stats reads all counters of a shard in one transaction. It returns nil when the shard does not exist.
func (s *shard) stats(ctx context.Context) (*driver.TopicStats, error) {
	for range staleTries {
		g := s.groups()
		var fields *goredis.MapStringStringCmd
		var delayed, held, invalid *goredis.IntCmd
		var now *goredis.TimeCmd
		counts := make([]*groupCounts, len(g.names))
		_, err := s.d.client.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			fields = p.HGetAll(ctx, s.keys[keyTopic])
			delayed, held, invalid = p.ZCard(ctx, s.keys[keyDelayed]), p.ZCard(ctx, s.keys[keyHeld]), p.ZCard(ctx, s.keys[keyInvalid])
			for i := range g.names {
				counts[i] = askCounts(ctx, p, g.keys[topicKeys+i*groupKeys:])
			}
			return nil
		})
		if err != nil && !isNil(err) {
			return nil, redisconn.Classify(err)
		}
		now = s.d.client.Time(ctx)
		at, err := now.Result()
		if err != nil {
			return nil, redisconn.Classify(err)
		}
		f := fields.Val()
		if len(f) == 0 {
			return nil, nil
		}
		if f["epoch"] != g.epoch {
			s.learn(f["epoch"], f["groups"])
			continue
		}
		st := &driver.TopicStats{Topic: s.topic, Paused: f["paused"] == "1", Published: number(f, "published"), Fanned: number(f, "fanned"),
			Expired: number(f, "expired"), Cancelled: number(f, "cancelled"), Delayed: delayed.Val(), Held: held.Val(), Invalid: invalid.Val(),
			Messages: int64(number(f, "messages")), Bytes: int64(number(f, "bytes"))}
		for i, name := range g.names {
			one := counts[i].stats(name, at)
			if one.Ready > 0 && one.Inflight+one.Waiting > 0 {
				behind, err := s.oldestBehind(ctx, g.keys[topicKeys+i*groupKeys:], at)
				if err != nil {
					return nil, err
				}
				one.Oldest = max(one.Oldest, behind)
			}
			st.Groups = append(st.Groups, one)
		}
		return st, nil
	}
	return nil, driver.NewError(driver.ErrNotApplied, "the groups of the topic keep changing", "try again", nil)
}

func number(fields map[string]string, name string) uint64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64)
	return uint64(max(0, n))
}

// groupCounts are the answers that make up the statistics of one group.
type groupCounts struct {
	fields  *goredis.MapStringStringCmd
	dead    *goredis.IntCmd
	members *goredis.ZSliceCmd
	heads   []*goredis.StringCmd
	backs   []*goredis.StringSliceCmd
}

func askCounts(ctx context.Context, p goredis.Pipeliner, keys []string) *groupCounts {
	c := &groupCounts{fields: p.HGetAll(ctx, keys[keyGroup]), dead: p.ZCard(ctx, keys[keyDead]), members: p.ZRangeWithScores(ctx, keys[keyMembers], 0, -1)}
	for lane := range 4 {
		c.heads = append(c.heads, p.LIndex(ctx, keys[keyLane+lane], 0))
		c.backs = append(c.backs, p.ZRange(ctx, keys[keyBack+lane], 0, 0))
	}
	return c
}

func (c *groupCounts) stats(name string, now time.Time) driver.GroupStats {
	f := c.fields.Val()
	g := driver.GroupStats{Group: name, Paused: f["paused"] == "1", Received: number(f, "received"), Acked: number(f, "acked"),
		Dropped: number(f, "dropped"), Expired: number(f, "expired"), Cancelled: number(f, "cancelled"),
		Inflight: int64(number(f, "inflight")), Waiting: int64(number(f, "waiting")), Dead: c.dead.Val(), Redelivered: number(f, "redelivered"),
		Retried: number(f, "retried"), Died: number(f, "graves")}
	if f["o"] == "1" {
		g.Order = driver.Relaxed
	}
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - g.Inflight - g.Waiting - g.Dead
	for _, m := range c.members.Val() {
		if m.Score > float64(now.UnixMilli()) {
			g.Consumers++
		}
	}
	for lane := range 4 {
		for _, head := range append(c.backs[lane].Val(), c.heads[lane].Val()) {
			if it, ok := parseItem(head); ok {
				g.Oldest = max(g.Oldest, now.Sub(it.since))
			}
		}
	}
	return g
}
