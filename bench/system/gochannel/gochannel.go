// Package gochannel is the peer watermill GoChannel: a Pub/Sub on Go channels with acknowledgements.
package gochannel

import (
	"context"
	"strconv"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/ferrymq/ferry/bench/system"
)

const (
	topic = "bench"
	// outputBuffer lets the subscriber take messages without a handover each.
	outputBuffer = 1024
	// readers is the number of goroutines for short handlers: 1, 2 and 8 were tried.
	readers = 8
)

// System is watermill's GoChannel.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "watermill gochannel", Version: system.ModuleVersion("github.com/ThreeDotsLabs/watermill"),
		Settings: "OutputChannelBuffer 1024, BlockPublishUntilSubscriberAck false, no logger, one subscription read by 8 " +
			"goroutines, or as many as there are slow handlers; " +
			"Persistent only where messages are published before anybody subscribes",
		Why: "of its four documented settings these two bear on speed: a publish that does not wait for the handler, and a " +
			"buffered output channel " +
			"(buffers of 0, 100, 1024 and 16,384 and 1, 2 and 8 readers were tried, on a busy machine, by processor time for " +
			"a message); " +
			"without Persistent it drops what nobody subscribes to; message ids are counters, cheaper than its random ones",
	}
}

// Lacks says what GoChannel cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "Publish has no acknowledgement to wait for"
	case system.Delays, system.Keys:
		return "GoChannel has no " + string(f)
	case system.Stores:
		return "messages are on the heap"
	case system.Retries:
		return "GoChannel retries at once, without a wait"
	}
	return ""
}

// Open makes a Pub/Sub.
func (System) Open(_ context.Context, o system.Options) (system.Session, error) {
	return &session{pubsub: gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: outputBuffer,
		Persistent: o.Backlog}, nil)}, nil
}

type session struct {
	pubsub *gochannel.GoChannel

	mu   sync.Mutex
	next uint64
}

func (s *session) Publisher() system.Publisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next += 1 << 40 // each publisher counts its ids from its own start
	return &publisher{pubsub: s.pubsub, id: s.next}
}

func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	if o.Concurrency == 0 {
		o.Concurrency = readers
	}
	ctx, cancel := context.WithCancel(ctx)
	messages, err := s.pubsub.Subscribe(ctx, topic)
	if err != nil {
		cancel()
		return nil, err
	}
	c := &consumer{cancel: cancel}
	for range o.Concurrency {
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

// Settled has nothing to ask: Ack only closes a channel.
func (s *session) Settled(context.Context) error { return nil }

func (s *session) Usage() (system.Usage, error) { return system.Usage{}, nil }

func (s *session) Close() error { return s.pubsub.Close() }

type publisher struct {
	pubsub *gochannel.GoChannel
	id     uint64
}

func (p *publisher) KeepsBodies() bool { return true }

func (p *publisher) message(m system.Message) *message.Message {
	p.id++
	return message.NewMessage(strconv.FormatUint(p.id, 36), m.Body)
}

func (p *publisher) Publish(_ context.Context, m system.Message) error {
	return p.pubsub.Publish(topic, p.message(m))
}

func (p *publisher) PublishBatch(_ context.Context, ms []system.Message) error {
	batch := make([]*message.Message, len(ms))
	for i, m := range ms {
		batch[i] = p.message(m)
	}
	return p.pubsub.Publish(topic, batch...)
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }

type consumer struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func (c *consumer) Stop(context.Context) error {
	c.cancel()
	c.running.Wait()
	return nil
}
