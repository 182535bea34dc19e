// Package wmstream is the peer watermill-redisstream: a Pub/Sub on one Redis stream with a consumer group.
package wmstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/redisserver"
)

const (
	topic = "bench"
	group = "default"
)

// System is watermill-redisstream with so many subscribers.
type System struct{ Subscribers int }

// Info describes it.
func (s System) Info() system.Info {
	name := "watermill redisstream"
	if s.Subscribers == 1 {
		name += ", 1 subscriber"
	}
	return system.Info{
		Name: name, Version: system.ModuleVersion("github.com/ThreeDotsLabs/watermill-redisstream"),
		Settings: fmt.Sprintf("%s; one stream, one consumer group, %d subscribers with a connection each, "+
			"DisableIndefiniteInitialBlock, no logger, all else default; as many subscribers as there are slow handlers",
			redisserver.Settings, s.Subscribers),
		Why: "a subscriber reads, hands over and acknowledges one message at a time: more of them in a group is its " +
			"documented way to scale; message ids are counters, cheaper than its random ones; nothing is trimmed, which is " +
			"its default",
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
		return "a message that was not acknowledged is sent again at once"
	case system.Restarts:
		return "the server keeps the messages"
	}
	return ""
}

// Open starts a Redis.
func (s System) Open(context.Context, system.Options) (system.Session, error) {
	server, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: client}, nil)
	if err != nil {
		return nil, errors.Join(err, client.Close(), server.Close())
	}
	return &session{server: server, client: client, publisher: publisher, subscribers: s.Subscribers}, nil
}

type session struct {
	server      *redisserver.Server
	client      *redis.Client
	publisher   *redisstream.Publisher
	subscribers int

	mu   sync.Mutex
	next uint64
}

func (s *session) Publisher() system.Publisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next += 1 << 40 // each publisher counts its ids from its own start
	return &publisher{publisher: s.publisher, id: s.next}
}

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

// Close ends the client with its publisher, whose it is.
func (s *session) Close() error { return errors.Join(s.publisher.Close(), s.server.Close()) }

// Settled waits until the group has read everything and nothing is pending.
func (s *session) Settled(ctx context.Context) error {
	for {
		length, err := s.client.XLen(ctx, topic).Result()
		if err != nil {
			return err
		}
		groups, err := s.client.XInfoGroups(ctx, topic).Result()
		if err != nil {
			return err
		}
		if len(groups) == 1 && groups[0].Pending == 0 && groups[0].EntriesRead == length {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d entries, %+v: %w", length, groups, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Consume starts the subscribers.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	c := &consumer{}
	for i := range max(s.subscribers, o.Concurrency) {
		if err := c.subscribe(ctx, s.server.Addr(), strconv.Itoa(i), h); err != nil {
			return nil, errors.Join(err, c.Stop(ctx))
		}
	}
	return c, nil
}

type consumer struct {
	closers []func() error
	running sync.WaitGroup
}

func (c *consumer) subscribe(ctx context.Context, addr, name string, h system.Handler) error {
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 4})
	c.closers = append(c.closers, client.Close)
	sub, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
		Client: client, ConsumerGroup: group, Consumer: name, DisableIndefiniteInitialBlock: true,
	}, nil)
	if err != nil {
		return err
	}
	c.closers = append(c.closers, sub.Close)
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		return err
	}
	c.running.Go(func() {
		for m := range messages {
			if h(m.Payload) == nil {
				m.Ack()
			} else {
				m.Nack()
			}
		}
	})
	return nil
}

func (c *consumer) Stop(context.Context) error {
	var errs []error
	for i := len(c.closers) - 1; i >= 0; i-- {
		if err := c.closers[i](); !errors.Is(err, redis.ErrClosed) { // a subscriber closes its client too
			errs = append(errs, err)
		}
	}
	c.running.Wait()
	return errors.Join(errs...)
}

type publisher struct {
	publisher *redisstream.Publisher
	id        uint64
}

// KeepsBodies is false: a publish is over when the server has it.
func (p *publisher) KeepsBodies() bool { return false }

func (p *publisher) message(ctx context.Context, m system.Message) *message.Message {
	p.id++
	msg := message.NewMessage(strconv.FormatUint(p.id, 36), m.Body)
	msg.SetContext(ctx)
	return msg
}

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.publisher.Publish(topic, p.message(ctx, m))
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	batch := make([]*message.Message, len(ms))
	for i, m := range ms {
		batch[i] = p.message(ctx, m)
	}
	return p.publisher.Publish(topic, batch...)
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }
