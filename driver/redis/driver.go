package redis

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// idWindow is how long a producer's own id is remembered at least, after its message is gone.
const idWindow = 60 * time.Second

// Driver is a connection to one Redis server, Sentinel set or Cluster.
type Driver struct {
	o        Options
	shell    *redisshell.Shell[*subscription]
	client   goredis.UniversalClient // of the shell
	scripts  *scripts
	caps     driver.Capabilities
	requests requests
	arenas   arenas
	topics   *redisshell.Topics[*shard]

	clock     clock
	wake      *redisshell.Notifier[*shard]
	scheduler *scheduler
}

var _ driver.Driver = (*Driver)(nil)

// New connects, and checks the server. Close the driver when it is no longer used.
func New(ctx context.Context, o Options) (*Driver, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	d := &Driver{o: o}
	keys := redisshell.Keys{Registry: registryKey(o.Prefix), Values: o.Prefix + ":kv/"}
	if d.shell, err = redisshell.Open[*subscription](ctx, o.common(), keys); err != nil {
		return nil, err
	}
	d.client = d.shell.Client
	d.scripts = newScripts(d.shell.Survey.Opened().Flags())
	d.caps = d.shell.Capabilities(driver.Capabilities{
		Driver:        "redis",
		KeyedPriority: driver.PriorityEverywhere,
		Parallel:      driver.ParallelUnbounded,
		Dedup:         driver.DedupExact,
		IDWindow:      idWindow,
		Bound:         driver.BoundPerShard,
		AtomicPublish: driver.AtomicPerShard,
		AtomicEmit:    driver.AtomicPerShard,
		History:       driver.HistoryNone,
		MaxBody:       o.MaxBody,
	})
	d.requests.nonce = d.shell.Nonce + "-"
	d.topics = redisshell.NewTopics(d.shell, redisshell.TopicKind[*shard]{Part: "shard", Parts: o.Shards, New: d.newShard,
		Check: (*shard).check, Create: (*shard).create, Join: (*shard).joinOne, Known: d.listen})
	d.wake = redisshell.NewNotifier[*shard](d.client, o.Logger)
	d.scheduler = newScheduler(d)
	d.shell.Go(d.hear)
	d.shell.Go(d.scheduler.run)
	d.shell.Go(d.keepHouse)
	return d, nil
}

// KV returns the named values.
func (d *Driver) KV() driver.KV { return d.shell.KV }

// Capabilities are what was found out about the server when it was opened.
func (d *Driver) Capabilities() driver.Capabilities {
	c := d.caps
	c.Levels = slices.Clone(c.Levels)
	return c
}

// Close ends every subscription, then the connections, if they are the driver's own.
func (d *Driver) Close(ctx context.Context) error { return d.shell.Close(ctx, d.wake.Close) }

// clock estimates the server's time, only to know when to ask: the server alone decides what is due.
type clock struct{ offset atomic.Int64 } // server minus ours, nanoseconds

// saw notes a time that the server told just now.
func (c *clock) saw(serverMS int64) {
	c.offset.Store(serverMS*int64(time.Millisecond) - time.Now().UnixNano())
}

// local returns our time of a server's.
func (c *clock) local(serverMS int64) time.Time {
	const years = 100 * 365 * 24 * int64(time.Hour/time.Millisecond)
	now := time.Now()
	away := serverMS - (now.UnixNano()+c.offset.Load())/int64(time.Millisecond)
	return now.Add(time.Duration(min(max(away, -years), years)) * time.Millisecond)
}
