package kafka

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/kafkakv"
)

// Driver is a connection to a Kafka cluster.
type Driver struct {
	cluster   *cluster.Cluster
	tables    *compacted.Tables
	registry  *registry.Registry
	delays    *delay.Delays
	publisher *publisher.Publisher
	groups    *consumer.Groups
	letters   *letterBox
	kv        *kafkakv.KV

	caps    driver.Capabilities
	history trimHistory
	cancel  context.CancelFunc
}

var _ driver.Driver = (*Driver)(nil)

// New connects to the cluster and reads what topics and groups there are. Close it when it is no longer used.
func New(ctx context.Context, o Options) (*Driver, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := cluster.New(o.settings(), o.Session != 0)
	if err != nil {
		return nil, err
	}
	ts, err := compacted.NewTables(c, o.rowLocks)
	if err != nil {
		c.Client.Close()
		return nil, err
	}
	d := &Driver{cluster: c, tables: ts, history: trimHistory{}}
	d.registry = registry.New(c, ts)
	d.delays = delay.New(c, ts, d.registry)
	d.publisher = publisher.New(c, d.registry, d.delays)
	d.groups = consumer.New(c, ts, d.registry, d.delays, d.publisher)
	d.letters = &letterBox{d}
	d.publisher.Stats = d.Stats
	if err := d.open(ctx, o); err != nil {
		c.Client.Close()
		ts.Reader.Close()
		return nil, err
	}
	return d, nil
}

func (d *Driver) open(ctx context.Context, o Options) error {
	if err := d.cluster.Reach(ctx); err != nil {
		return err
	}
	d.caps = d.capabilities()
	d.publisher.Limits = d.caps
	if err := d.cluster.CreateTopics(ctx, cluster.TopicSpec{Name: d.cluster.MetaTopic(), Partitions: 1}); err != nil {
		return err
	}
	d.kv = d.newKV(o)
	run, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.cluster.Task(func() { d.tables.ReadTables(run) })
	d.cluster.Task(func() { housekeeper{d}.keepHouse(run) })
	err := d.registry.Follow(ctx, d.groups.Changed)
	if err == nil && d.cluster.Settings.Transactions { // owners of partitions may leave some open
		err = d.registry.Announce(ctx, cluster.TransactionsKey)
	}
	if err != nil {
		cancel()
		d.cluster.Tasks.Wait()
	}
	return err
}

func (d *Driver) capabilities() driver.Capabilities {
	level := driver.Written
	if d.cluster.Settings.Replicas > 1 {
		level = driver.Replicated(1) // min.insync.replicas is 2
	}
	together := driver.AtomicNever
	if d.cluster.Settings.Transactions {
		together = driver.AtomicTransaction
	}
	return driver.Capabilities{
		Driver: "kafka", LeaseScope: driver.LeasePerPartition, MinLease: d.cluster.Settings.Session,
		DefaultLease:  d.cluster.Settings.Session,
		KeyedPriority: driver.PriorityInFetchWindow, Parallel: driver.ParallelPerPartition, Dedup: driver.DedupPerSession,
		IDWindow: cluster.IDWindow,
		Bound:    driver.BoundEstimated, AtomicPublish: together, AtomicEmit: together, Counts: driver.CountsEstimated,
		GetByID: driver.LookupScans, PhysicalDelete: false, SettleLag: cluster.SettleLag, History: driver.HistoryKept,
		Durability: level, Levels: []driver.Durability{level}, MaxBody: d.cluster.Settings.MaxBody,
	}
}

// Capabilities returns what the cluster gives.
func (d *Driver) Capabilities() driver.Capabilities {
	c := d.caps
	c.Levels = slices.Clone(c.Levels)
	return c
}

// Close releases what subscriptions hold, commits, leaves the groups and ends the connections.
func (d *Driver) Close(ctx context.Context) error {
	if !d.cluster.Shut() {
		return nil
	}
	d.kv.Close()
	d.groups.LeaveAll(ctx)
	d.delays.Stop()
	d.cancel()
	d.tables.Reader.Close()
	d.cluster.Tasks.Wait()
	d.cluster.Atomic.Close()
	d.cluster.Client.Close()
	return nil
}

// Namespace is what the names of all topics and groups begin with.
func (d *Driver) Namespace() string { return d.cluster.Settings.Namespace }
