// Package wmkafka is the peer watermill-kafka: a Pub/Sub on a Kafka topic with a consumer group.
package wmkafka

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/kafkaserver"
)

const partitions = 12 // as many as ours have by default

// System is watermill-kafka.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "watermill kafka", Version: system.ModuleVersion("github.com/ThreeDotsLabs/watermill-kafka/v3"),
		Settings: kafkaserver.Settings + "; 12 partitions, acks all, sarama 3.6 protocol, Offsets.Initial oldest, no " +
			"logger, all else its default; one subscription, whose partitions are read side by side",
		Why: "its documented configuration; its default protocol version (1.0) is refused by Kafka 4; a message of a " +
			"partition waits for the acknowledgement of the one ahead, so that partitions are its parallelism; message ids " +
			"are counters, cheaper than its random ones",
	}
}

// Lacks says what it cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "Publish waits for each message"
	case system.Delays, system.Keys:
		return "it has no " + string(f)
	case system.Retries:
		return "a message that was not acknowledged is sent again after a fixed time"
	case system.Restarts:
		return "the server keeps the messages"
	}
	return ""
}

// Open connects a publisher. The subscriber makes the topic.
func (System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	server, err := kafkaserver.Find()
	if err != nil {
		return nil, err
	}
	s := &session{server: server}
	sub, err := s.subscriber()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(sub.SubscribeInitialize(server.Name), sub.Close()); err != nil {
		return nil, err
	}
	config := kafka.DefaultSaramaSyncPublisherConfig()
	config.Version, config.Producer.RequiredAcks = sarama.V3_6_0_0, sarama.WaitForAll
	s.publisher, err = kafka.NewPublisher(kafka.PublisherConfig{Brokers: []string{server.Addr},
		Marshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: config}, nil)
	return s, err
}

type session struct {
	server    *kafkaserver.Server
	publisher *kafka.Publisher

	mu   sync.Mutex
	next uint64
}

func (s *session) subscriber() (*kafka.Subscriber, error) {
	config := kafka.DefaultSaramaSubscriberConfig()
	config.Version, config.Consumer.Offsets.Initial = sarama.V3_6_0_0, sarama.OffsetOldest
	return kafka.NewSubscriber(kafka.SubscriberConfig{
		Brokers: []string{s.server.Addr}, Unmarshaler: kafka.DefaultMarshaler{}, OverwriteSaramaConfig: config,
		ConsumerGroup:          s.server.Name,
		InitializeTopicDetails: &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1},
	}, nil)
}

func (s *session) Publisher() system.Publisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next += 1 << 40 // each publisher counts its ids from its own start
	return &publisher{session: s, id: s.next}
}

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

func (s *session) Close() error { return errors.Join(s.publisher.Close(), s.server.Remove()) }

// Settled has nothing to ask: offsets are marked, and committed every second.
func (s *session) Settled(context.Context) error { return nil }

func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	sub, err := s.subscriber()
	if err != nil {
		return nil, err
	}
	messages, err := sub.Subscribe(ctx, s.server.Name)
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	c := &consumer{sub: sub}
	for range max(partitions, o.Concurrency) {
		c.running.Go(func() {
			for m := range messages {
				if h(m.Payload) == nil {
					m.Ack()
				} else {
					m.Nack()
				}
			}
		})
	}
	return c, nil
}

type consumer struct {
	sub     *kafka.Subscriber
	running sync.WaitGroup
}

func (c *consumer) Stop(context.Context) error {
	err := c.sub.Close()
	c.running.Wait()
	return err
}

type publisher struct {
	session *session
	id      uint64
}

// KeepsBodies is false: a publish is over when the broker has it.
func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) message(m system.Message) *message.Message {
	p.id++
	return message.NewMessage(strconv.FormatUint(p.id, 36), m.Body)
}

func (p *publisher) Publish(_ context.Context, m system.Message) error {
	return p.session.publisher.Publish(p.session.server.Name, p.message(m))
}

func (p *publisher) PublishBatch(_ context.Context, ms []system.Message) error {
	batch := make([]*message.Message, len(ms))
	for i, m := range ms {
		batch[i] = p.message(m)
	}
	return p.session.publisher.Publish(p.session.server.Name, batch...)
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }
