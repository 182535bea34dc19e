package redisstream

import (
	"context"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// idWindow is how long a producer's own id is remembered; lua/publish.lua has it too.
const idWindow = 60 * time.Second

// Driver is a connection to one Redis server, Sentinel set or Cluster.
type Driver struct {
	o       Options
	shell   *redisshell.Shell[*subscription]
	client  goredis.UniversalClient // of the shell
	scripts *scripts
	caps    driver.Capabilities
	topics  *redisshell.Topics[*topic]
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
	d.adapt(d.shell.Survey.Opened())
	d.topics = redisshell.NewTopics(d.shell, redisshell.TopicKind[*topic]{Part: "partition", New: d.newTopic,
		Create: d.create})
	d.wake = redisshell.NewNotifier[*partition](d.client, o.Logger)
	d.shell.Go(d.hear)
	return d, nil
}

// adapt notes what the server can do.
func (d *Driver) adapt(s *redisconn.Server) {
	d.scripts = newScripts(s.Flags())
	d.caps = driver.Capabilities{
		Driver:         "redisstream",
		LeaseScope:     driver.LeasePerMessage,
		MinLease:       time.Second,
		DefaultLease:   10 * time.Second,
		KeyedPriority:  driver.PriorityInFetchWindow,
		Parallel:       driver.ParallelPerPartition,
		Dedup:          driver.DedupPerPartition,
		IDWindow:       idWindow,
		Bound:          driver.BoundPerPartition,
		AtomicPublish:  driver.AtomicPerPartition,
		AtomicEmit:     driver.AtomicNever,
		Counts:         driver.CountsExact,
		GetByID:        driver.LookupIndexed,
		PhysicalDelete: true,
		History:        driver.HistoryKept,
		Endings:        true,
		Durability:     s.Level(),
		Levels:         s.Levels(),
		MaxBody:        d.o.MaxBody,
	}
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
