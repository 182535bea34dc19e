package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/ferrymq/ferry/driver"
)

// Settings are the options of a driver, with defaults filled in.
type Settings struct {
	Brokers            []string
	Namespace          string
	Partitions         int
	InternalPartitions int
	Replicas           int
	MaxBody            int
	Connect            []kgo.Opt // how every client connects, and what it is called
	Session            time.Duration
	Transactions       bool
	RejectForeign      bool
}

// Heartbeat is how often a member of a group is heard of, and hears that others died: the sooner, the less is added to
// the session.
func (o Settings) Heartbeat() time.Duration { return min(o.Session/12, time.Second/2) }

// Cluster is the connection to the brokers: what is stored, read and asked there, whatever it means.
type Cluster struct {
	names
	Settings Settings
	// sessionGiven says that Options.Session was set, so that it is never changed.
	sessionGiven bool
	Client       *kgo.Client // produces, and carries requests
	Admin        *kadm.Client
	Atomic       *Transactor // of publishes that are stored as a whole; see storeWhole
	unpack       kgo.Decompressor
	Clock        brokerClock

	mu      sync.Mutex
	joining map[string]chan struct{} // what one caller does at a time; see single

	life  context.Context
	end   context.CancelFunc // of life
	Tasks sync.WaitGroup
}

// New makes the client. It connects with the first request.
func New(o Settings, sessionGiven bool) (*Cluster, error) {
	d := &Cluster{names: names(o.Namespace), Settings: o, sessionGiven: sessionGiven, unpack: kgo.DefaultDecompressor(),
		joining: map[string]chan struct{}{}}
	d.life, d.end = context.WithCancel(context.Background())
	d.Atomic = &Transactor{d: d, ID: o.Namespace + "publish:" + rand.Text()}
	var err error
	if d.Client, err = d.NewClient(d.producerOptions()...); err != nil {
		return nil, err
	}
	d.Admin = kadm.NewClient(d.Client)
	return d, nil
}

// producerOptions are those of clients that store messages.
func (d *Cluster) producerOptions() []kgo.Opt {
	return []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.WithCompressor(newCompressor()),
		kgo.ProducerBatchMaxBytesFn(d.batchLimit), kgo.RecordDeliveryTimeout(StorePatience)}
}

// batchLimit is the most that one batch to a topic has, and so one record. Beside a topic messages lie with all that
// their handlers said, which may be more than the message.
func (d *Cluster) batchLimit(topic string) int32 {
	return int32(LeastLimit(d.Settings.MaxBody, d.besides(topic)))
}

// NewClient makes a client with some more options than every one has. It connects with the first request.
func (d *Cluster) NewClient(more ...kgo.Opt) (*kgo.Client, error) {
	cl, err := kgo.NewClient(d.ClientOptions(more...)...)
	if err != nil {
		return nil, driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
	}
	return cl, nil
}

// GroupOptions are those of a member of a group that reads a topic, and never skips what is unread.
func (d *Cluster) GroupOptions(group, topic string) []kgo.Opt {
	return []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(d.Settings.Session),
		kgo.HeartbeatInterval(d.Settings.Heartbeat()), kgo.RebalanceTimeout(Rebalance), kgo.FetchMaxWait(2 * FetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}
}

// ClientOptions are those of every client, with some more.
func (d *Cluster) ClientOptions(more ...kgo.Opt) []kgo.Opt {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(int16(kmsg.OffsetCommit), 9)    // later ones name topics by id
	versions.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4) // later ones need the second protocol of transactions
	opts := []kgo.Opt{kgo.SeedBrokers(d.Settings.Brokers...), kgo.MaxVersions(versions),
		kgo.MetadataMinAge(100 * time.Millisecond),
		// markers are kept, so that it shows how far a fetch came
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords()}
	return slices.Concat(opts, d.Settings.Connect, more)
}

// LookAround lets a client see which brokers there are: what it has asked of one that is not among them it gives up. It
// does not wait for long, since the one that is asked may be gone itself; the next call asks another.
func LookAround(ctx context.Context, cl *kgo.Client) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req := kmsg.NewPtrMetadataRequest() // kadm would answer with what the client knows
	req.Topics = []kmsg.MetadataRequestTopic{}
	_, _ = req.RequestWith(ctx, cl)
}

// Done is closed when the driver is.
func (d *Cluster) Done() <-chan struct{} { return d.life.Done() }

// IsClosed reports whether the driver is closed.
func (d *Cluster) IsClosed() bool { return d.life.Err() != nil }

// Shut notes that the driver is closed. It reports false when it was before.
func (d *Cluster) Shut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := !d.IsClosed()
	d.end()
	return first
}

// Task runs something that Close waits for. It reports false when the driver is closed.
func (d *Cluster) Task(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.IsClosed() {
		return false
	}
	d.Tasks.Go(do)
	return true
}

// Single lets one caller at a time do something by this name.
func (d *Cluster) Single(ctx context.Context, name string) (release func(), err error) {
	for {
		d.mu.Lock()
		busy := d.joining[name]
		if busy == nil {
			mine := make(chan struct{})
			d.joining[name] = mine
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				delete(d.joining, name)
				d.mu.Unlock()
				close(mine)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
