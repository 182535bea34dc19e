package redisstream

import (
	"context"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// idWindow is how long a producer's own id is remembered; lua/store.lua has it too.
const idWindow = 60 * time.Second

// Driver is a connection to one Redis server, Sentinel set or Cluster.
type Driver struct {
	o       Options
	shell   *redisshell.Shell[*subscription]
	client  goredis.UniversalClient // of the shell
	scripts *scripts
	caps    driver.Capabilities
	topics  *redisshell.Topics[*partition]
	wake    *redisshell.Notifier[*partition]
}

var _ driver.Driver = (*Driver)(nil)

// New connects, and checks the server. Close the driver when it is no longer used.
func New(ctx context.Context, o Options) (*Driver, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	d := &Driver{o: o}
	keys := redisshell.Keys{Registry: registryKey(o.Prefix), Values: o.Prefix + "/kv:"}
	if d.shell, err = redisshell.Open[*subscription](ctx, o.common(), keys); err != nil {
		return nil, err
	}
	d.client = d.shell.Client
	d.scripts = newScripts(d.shell.Survey.Opened().Flags())
	d.caps = d.shell.Capabilities(driver.Capabilities{
		Driver:        "redisstream",
		KeyedPriority: driver.PriorityInFetchWindow,
		Parallel:      driver.ParallelPerPartition,
		Dedup:         driver.DedupPerPartition,
		IDWindow:      idWindow,
		Bound:         driver.BoundPerPartition,
		AtomicPublish: driver.AtomicPerPartition,
		AtomicEmit:    driver.AtomicNever,
		History:       driver.HistoryKept,
		Endings:       true,
		MaxBody:       o.MaxBody,
	})
	d.topics = redisshell.NewTopics(d.shell, redisshell.TopicKind[*partition]{Part: "partition", Parts: o.Partitions,
		New: d.newPartition, Create: (*partition).create, Join: (*partition).joinOne})
	d.wake = redisshell.NewNotifier[*partition](d.client, o.Logger)
	d.shell.Go(d.hear)
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
