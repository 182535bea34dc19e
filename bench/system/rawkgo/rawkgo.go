// Package rawkgo is the limit for a queue on Kafka: franz-go's client, records in, polls out, offsets committed.
package rawkgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/kafkaserver"
)

const (
	partitions = 12 // as many as ours have by default
	pollBatch  = 10_000
)

// metadataMinAge is for both clients: otherwise a partition whose leader is not known yet waits for 5 s.
var metadataMinAge = kgo.MetadataMinAge(100 * time.Millisecond)

// System is one topic with a group.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw kgo", Version: system.ModuleVersion("github.com/twmb/franz-go"),
		Settings: fmt.Sprintf("%s; %d partitions, acks all, idempotent, no compression (bodies are random), metadata after "+
			"100 ms as ours, all else default; publish: ProduceSync, or Produce and Flush; drain: one group member, "+
			"PollRecords of %d, handlers, commit of each poll",
			kafkaserver.Settings, partitions, pollBatch),
		Why: "what the client that ours is built on does without a queue around it",
	}
}

// Lacks says what a log cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Delays, system.Keys, system.Retries:
		return "a log has no " + string(f) + " that handlers run by"
	case system.Restarts:
		return "the server keeps the messages"
	}
	return ""
}

// Open makes a topic.
func (System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	server, err := kafkaserver.Find()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Addr), kgo.DefaultProduceTopic(server.Name),
		kgo.ProducerBatchCompression(kgo.NoCompression()), metadataMinAge)
	if err != nil {
		return nil, err
	}
	s := &session{server: server, client: client}
	if err := s.create(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

type session struct {
	server *kafkaserver.Server
	client *kgo.Client

	mu       sync.Mutex
	consumer *consumer // that Settled asks
}

func (s *session) create(ctx context.Context) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = s.server.Name, partitions, 1
	req := kmsg.NewCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	if code := resp.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("creating a topic: error %d", code)
	}
	return s.led(ctx)
}

// led waits until every partition has a leader that answers. A consumer that comes earlier fetches from those that do,
// and the others wait until that fetch is over, which for want of messages is after 5 s.
func (s *session) led(ctx context.Context) error {
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = s.server.Name
	for p := range int32(partitions) {
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp = p, -2 // the first
		topic.Partitions = append(topic.Partitions, one)
	}
	for {
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID, req.Topics = -1, append(req.Topics, topic)
		resp, err := req.RequestWith(ctx, s.client)
		if err == nil && allLed(resp) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not every partition has a leader: %w", errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func allLed(resp *kmsg.ListOffsetsResponse) bool {
	n := 0
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				n++
			}
		}
	}
	return n == partitions
}

func (s *session) Publisher() system.Publisher { return &publisher{client: s.client} }

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

func (s *session) Close() error {
	s.client.Close()
	return s.server.Remove()
}

// Settled waits until what was polled is committed.
func (s *session) Settled(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.consumer == nil {
		return nil
	}
	return s.consumer.client.CommitUncommittedOffsets(ctx)
}

// Consume joins the group. Handlers run in the loop that polls, unless a scenario wants more at once.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.server.Addr), kgo.ConsumeTopics(s.server.Name),
		kgo.ConsumerGroup(s.server.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		metadataMinAge)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &consumer{client: client, handle: h, atOnce: max(1, o.Concurrency), cancel: cancel, ended: make(chan error, 1)}
	go func() { c.ended <- c.poll(ctx) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consumer = c
	return c, nil
}

type consumer struct {
	client *kgo.Client
	handle system.Handler
	atOnce int
	cancel context.CancelFunc
	ended  chan error
}

func (c *consumer) Stop(context.Context) error {
	c.cancel()
	err := <-c.ended
	c.client.Close()
	return err
}

func (c *consumer) poll(ctx context.Context) error {
	for {
		fetches := c.client.PollRecords(ctx, pollBatch)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := c.work(fetches.Records()); err != nil {
			return err
		}
		if err := c.client.CommitUncommittedOffsets(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// work handles records, so many at once.
func (c *consumer) work(records []*kgo.Record) error {
	if c.atOnce == 1 {
		for _, r := range records {
			if err := c.handle(r.Value); err != nil {
				return err
			}
		}
		return nil
	}
	var running sync.WaitGroup
	room, errs := make(chan struct{}, c.atOnce), make([]error, len(records))
	for i, r := range records {
		room <- struct{}{}
		running.Go(func() {
			errs[i] = c.handle(r.Value)
			<-room
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

type publisher struct {
	client *kgo.Client
	mu     sync.Mutex
	err    error // of asynchronous publishes
}

// KeepsBodies is true: a record is sent after Produce has returned.
func (p *publisher) KeepsBodies() bool { return true }

func record(m system.Message) *kgo.Record { return &kgo.Record{Value: m.Body} }

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.client.ProduceSync(ctx, record(m)).FirstErr()
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	records := make([]*kgo.Record, len(ms))
	for i, m := range ms {
		records[i] = record(m)
	}
	return p.client.ProduceSync(ctx, records...).FirstErr()
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	p.client.Produce(ctx, record(m), func(_ *kgo.Record, err error) {
		if err != nil {
			p.mu.Lock()
			p.err = errors.Join(p.err, err)
			p.mu.Unlock()
		}
	})
	return nil
}

func (p *publisher) Flush(ctx context.Context) error {
	err := p.client.Flush(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(err, p.err)
}
