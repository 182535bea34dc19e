package kafka

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkakv"
)

// Driver is a connection to a Kafka cluster.
type Driver struct {
	o Options
	// sessionGiven says that Options.Session was set, so that it is never changed.
	sessionGiven bool
	caps         driver.Capabilities
	client       *kgo.Client // produces, and carries requests
	reader       *kgo.Client // follows tables
	admin        *kadm.Client
	known        *remembered
	atomic       *atomicBatches
	unpack       kgo.Decompressor
	kv           *kafkakv.KV

	following sync.Mutex // orders what the reader is told
	tablesMu  sync.Mutex
	tables    map[topicPartition]*table
	meta      *table
	clock     brokerClock

	mu       sync.Mutex
	closed   bool
	topics   map[string]*topicState
	members  map[string]*member
	delays   *delays
	starting bool // somebody else delayed something: joinDelays runs
	joining  map[string]chan struct{}

	done   chan struct{} // closed by Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

var _ driver.Driver = (*Driver)(nil)

// New connects to the cluster and reads what topics and groups there are. Close it when it is no longer used.
func New(ctx context.Context, o Options) (*Driver, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d := &Driver{o: o.resolved(), sessionGiven: o.Session != 0, tables: map[topicPartition]*table{}, topics: map[string]*topicState{}, members: map[string]*member{},
		joining: map[string]chan struct{}{}, done: make(chan struct{}), known: newRemembered(), unpack: kgo.DefaultDecompressor(),
		clock: brokerClock{probes: map[string]chan time.Time{}}}
	d.atomic = newAtomicBatches(d.o.Namespace + "publish:" + rand.Text())
	var err error
	if d.client, err = kgo.NewClient(d.clientOptions(d.producerOptions()...)...); err != nil {
		return nil, driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
	}
	d.admin = kadm.NewClient(d.client)
	if d.reader, err = kgo.NewClient(d.clientOptions(kgo.FetchMaxWait(fetchWait), kgo.DisableFetchSessions())...); err != nil {
		d.client.Close()
		return nil, driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
	}
	if err := d.open(ctx); err != nil {
		d.client.Close()
		d.reader.Close()
		return nil, err
	}
	return d, nil
}

// producerOptions are those of clients that store messages.
func (d *Driver) producerOptions() []kgo.Opt {
	return []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.WithCompressor(newThrifty()),
		kgo.ProducerBatchMaxBytes(int32(d.o.MaxBody) + 100<<10), kgo.RecordDeliveryTimeout(settlePatience)}
}

// clientOptions are those of every client, with some more.
func (d *Driver) clientOptions(more ...kgo.Opt) []kgo.Opt {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.OffsetCommit), 9)    // later ones name topics by id
	versions.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4) // later ones need the second protocol of transactions
	opts := []kgo.Opt{kgo.SeedBrokers(d.o.Brokers...), kgo.ClientID(d.o.ClientID), kgo.MaxVersions(versions), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords()} // markers are kept, so that it shows how far a fetch came
	if d.o.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(d.o.TLS))
	}
	if d.o.Dial != nil {
		opts = append(opts, kgo.Dialer(d.o.Dial))
	}
	if d.o.SASL != nil {
		opts = append(opts, kgo.SASL(d.o.SASL))
	}
	if d.o.Rack != "" {
		opts = append(opts, kgo.Rack(d.o.Rack))
	}
	return append(opts, more...)
}

func (d *Driver) open(ctx context.Context) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	d.caps = d.capabilities()
	if err := d.createTopics(ctx, topicSpec{d.metaTopic(), 1, compacted()}); err != nil {
		return err
	}
	d.kv = d.newKV()
	run, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.tasks.Add(1)
	go d.readTables(run)
	d.tasks.Go(func() { d.keepHouse(run) })
	d.meta = &table{changed: d.metaSeen, applied: d.metaChanged} // which read it
	d.begin(d.meta, d.metaTopic(), []int32{0})
	err := d.meta.sync(ctx)
	if err == nil {
		err = d.announceTransactions(ctx)
	}
	if err != nil {
		cancel()
		d.tasks.Wait()
	}
	return err
}

func (d *Driver) capabilities() driver.Capabilities {
	level := driver.Written
	if d.o.Replicas > 1 {
		level = driver.Replicated(1) // min.insync.replicas is 2
	}
	together := driver.AtomicNever
	if d.o.Transactions {
		together = driver.AtomicTransaction
	}
	return driver.Capabilities{
		Driver: "kafka", LeaseScope: driver.LeasePerPartition, MinLease: d.o.Session, DefaultLease: d.o.Session,
		KeyedPriority: driver.PriorityInFetchWindow, Parallel: driver.ParallelPerPartition, Dedup: driver.DedupPerSession, IDWindow: idWindow,
		Bound: driver.BoundEstimated, AtomicPublish: together, AtomicEmit: together, Counts: driver.CountsEstimated,
		GetByID: driver.LookupScans, PhysicalDelete: false, SettleLag: settleLag, History: driver.HistoryKept,
		Durability: level, Levels: []driver.Durability{level}, MaxBody: d.o.MaxBody,
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
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	close(d.done)
	members, delays := d.members, d.delays
	d.members, d.delays = map[string]*member{}, nil
	d.mu.Unlock()
	d.kv.Close()
	for _, m := range members {
		m.leave(ctx)
	}
	if delays != nil {
		delays.close()
	}
	d.cancel()
	d.reader.Close()
	d.tasks.Wait()
	d.atomic.close()
	d.client.Close()
	return nil
}

func (d *Driver) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// topicSpec is a Kafka topic that must exist.
type topicSpec struct {
	name       string
	partitions int
	configs    map[string]*string
}

func text(s string) *string { return &s }

// compacted are the settings of a topic that keeps the newest record of each key.
func compacted() map[string]*string {
	return map[string]*string{"cleanup.policy": text("compact,delete"), "retention.ms": text("-1"), "retention.bytes": text("-1"), "message.timestamp.type": text("LogAppendTime"),
		"segment.ms": text("3600000"), "min.cleanable.dirty.ratio": text("0.1"), "max.message.bytes": text("8388608")}
}

// logged are the settings of a main topic: nothing ends by itself.
func (d *Driver) logged() map[string]*string {
	return map[string]*string{"cleanup.policy": text("delete"), "retention.ms": text("-1"), "retention.bytes": text("-1"),
		"message.timestamp.type": text("LogAppendTime"), "max.message.bytes": text(strconv.Itoa(d.o.MaxBody + 200<<10))}
}

// Namespace is what the names of all topics and groups begin with.
func (d *Driver) Namespace() string { return d.o.Namespace }
