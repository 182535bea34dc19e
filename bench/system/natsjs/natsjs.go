// Package natsjs is the peer NATS JetStream: its server embedded in this process, reached by in-process connections.
package natsjs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/ferrymq/ferry/bench/system"
)

const (
	streamName   = "BENCH"
	workSubject  = "bench.work"
	laterSubject = "bench.later." // one subject for each scheduled message
	maxPending   = 4000           // the default of the async publisher
	readyTimeout = 10 * time.Second
)

// System is an embedded JetStream with one kind of storage.
type System struct {
	Storage jetstream.StorageType
	// SyncAlways makes the server sync every write to the disk before it acknowledges it.
	SyncAlways bool
}

// Info describes it.
func (s System) Info() system.Info {
	return system.Info{
		Name:    fmt.Sprintf("NATS JetStream (%s)", s.storageName()),
		Version: system.ModuleVersion("github.com/nats-io/nats-server/v2"),
		Settings: fmt.Sprintf("embedded server without listener, one in-process connection for all publishers and one for "+
			"the consumer, stream with %s storage, "+
			"work-queue retention, 1 replica; pull consumer by Consume with PullMaxMessages 5000, explicit acks, "+
			"MaxAckPending 100,000; "+
			"singles by Publish, batches and async by PublishAsync with %d pending; delays by @at schedules", s.storageName(),
			maxPending),
		Why: "its client documents Consume as faster than Fetch for continuous work; async publish saves a round trip for " +
			"each message; in-process connections save the network; " +
			"the server's newer batch publishing is not used, because this version of the client has no call for it; " +
			"MaxAckPending is raised so that acks never stall deliveries; work-queue retention frees what was handled, as a " +
			"queue must; tried on a busy machine, by processor time for a message: limits retention costs about the same, TCP " +
			"on loopback more for single publishes",
	}
}

func (s System) storageName() string {
	switch {
	case s.Storage == jetstream.MemoryStorage:
		return "memory"
	case s.SyncAlways:
		return "file, sync always"
	}
	return "file"
}

// Lacks says what JetStream cannot do.
func (s System) Lacks(f system.Feature) string {
	switch {
	case f == system.Keys:
		return "JetStream does not order by key in a shared consumer"
	case f == system.Stores && s.Storage == jetstream.MemoryStorage:
		return "memory storage is on the heap"
	}
	return ""
}

// Open starts a server with an empty stream.
func (s System) Open(ctx context.Context, o system.Options) (system.Session, error) {
	dir, err := os.MkdirTemp("", "bench-nats-")
	if err != nil {
		return nil, err
	}
	n := &session{dir: dir}
	if err := n.start(ctx, s, o); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

type session struct {
	dir      string
	server   *server.Server
	in, out  *nats.Conn
	js       jetstream.JetStream // on the publishing connection
	stream   jetstream.Stream
	consumer jetstream.Consumer

	scheduled atomic.Uint64 // schedules so far: each needs a subject of its own
}

func (n *session) start(ctx context.Context, s System, o system.Options) (err error) {
	n.server, err = server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: n.dir, NoSigs: true,
		JetStreamMaxMemory: 16 << 30, SyncAlways: s.SyncAlways})
	if err != nil {
		return err
	}
	n.server.Start()
	if !n.server.ReadyForConnections(readyTimeout) {
		return errors.New("the NATS server did not start")
	}
	if n.in, err = nats.Connect("", nats.InProcessServer(n.server)); err != nil {
		return err
	}
	if n.out, err = nats.Connect("", nats.InProcessServer(n.server)); err != nil {
		return err
	}
	if n.js, err = jetstream.New(n.in, jetstream.WithPublishAsyncMaxPending(maxPending)); err != nil {
		return err
	}
	_, err = n.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{workSubject, laterSubject + "*"}, Storage: s.Storage,
		Retention: jetstream.WorkQueuePolicy, AllowMsgSchedules: o.Delayed,
	})
	if err != nil {
		return err
	}
	return n.addConsumer(ctx)
}

func (n *session) addConsumer(ctx context.Context) error {
	js, err := jetstream.New(n.out)
	if err != nil {
		return err
	}
	if n.stream, err = js.Stream(ctx, streamName); err != nil {
		return err
	}
	n.consumer, err = n.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100_000, AckWait: 30 * time.Second,
		FilterSubject: workSubject,
	})
	return err
}

// Settled waits until the server has seen every acknowledgement.
func (n *session) Settled(ctx context.Context) error {
	for {
		info, err := n.consumer.Info(ctx)
		if err != nil {
			return err
		}
		if info.NumAckPending == 0 && info.NumPending == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d messages were not acknowledged, %d not delivered: %w", info.NumAckPending, info.NumPending,
				ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Usage is the size of the files, of which there are hardly any with memory storage.
func (n *session) Usage() (system.Usage, error) {
	bytes, err := system.DirSize(n.dir)
	return system.Usage{Bytes: bytes}, err
}

func (n *session) Close() error {
	for _, c := range []*nats.Conn{n.in, n.out} {
		if c != nil {
			c.Close()
		}
	}
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
	}
	return os.RemoveAll(n.dir)
}
