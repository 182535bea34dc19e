package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"

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
	ClientID           string
	TLS                *tls.Config
	SASL               sasl.Mechanism
	Rack               string
	Dial               func(ctx context.Context, network, address string) (net.Conn, error)
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
	closed  bool
	joining map[string]chan struct{} // what one caller does at a time; see single

	Done  chan struct{} // closed by shut
	Tasks sync.WaitGroup
}

// New makes the client. It connects with the first request.
func New(o Settings, sessionGiven bool) (*Cluster, error) {
	d := &Cluster{names: names(o.Namespace), Settings: o, sessionGiven: sessionGiven, unpack: kgo.DefaultDecompressor(),
		joining: map[string]chan struct{}{},
		Done:    make(chan struct{}), Clock: brokerClock{probes: map[string]chan time.Time{}}}
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
		kgo.ProducerBatchMaxBytes(int32(d.Settings.MaxBody) + 100<<10), kgo.RecordDeliveryTimeout(StorePatience)}
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
	opts := []kgo.Opt{kgo.SeedBrokers(d.Settings.Brokers...), kgo.ClientID(d.Settings.ClientID), kgo.MaxVersions(versions),
		kgo.MetadataMinAge(100 * time.Millisecond),
		// markers are kept, so that it shows how far a fetch came
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords()}
	if d.Settings.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(d.Settings.TLS))
	}
	if d.Settings.Dial != nil {
		opts = append(opts, kgo.Dialer(d.Settings.Dial))
	}
	if d.Settings.SASL != nil {
		opts = append(opts, kgo.SASL(d.Settings.SASL))
	}
	if d.Settings.Rack != "" {
		opts = append(opts, kgo.Rack(d.Settings.Rack))
	}
	return append(opts, more...)
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

// IsClosed reports whether the driver is closed.
func (d *Cluster) IsClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Shut notes that the driver is closed. It reports false when it was before.
func (d *Cluster) Shut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.closed = true
	close(d.Done)
	return true
}

// TopicSpec is a Kafka topic that must exist.
type TopicSpec struct {
	Name       string
	Partitions int
	Configs    map[string]*string
}

// Text is a value of a setting, which may be absent.
func Text(s string) *string { return &s }

// CompactedSettings are the settings of a topic that keeps the newest record of each key.
func CompactedSettings() map[string]*string {
	return map[string]*string{"cleanup.policy": Text("compact,delete"), "retention.ms": Text("-1"),
		"retention.bytes": Text("-1"), "message.timestamp.type": Text("LogAppendTime"),
		"segment.ms": Text("3600000"), "min.cleanable.dirty.ratio": Text("0.1"), "max.message.bytes": Text("8388608")}
}

// LogSettings are the settings of a topic with messages, or other records, of a size: nothing ends by itself.
func LogSettings(maxBody int) map[string]*string {
	return map[string]*string{"cleanup.policy": Text("delete"), "retention.ms": Text("-1"), "retention.bytes": Text("-1"),
		"message.timestamp.type": Text("LogAppendTime"), "max.message.bytes": Text(strconv.Itoa(maxBody + 200<<10))}
}

// Task runs something that Close waits for. It reports false when the driver is closed.
func (d *Cluster) Task(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
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
