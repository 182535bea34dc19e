package growth

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// flow is messages that are published in batches by one caller and handled by a worker that does nothing with them.
type flow struct {
	// message is the one with this number.
	message func(n int) *ferry.Message
	total   int
	// topics and groups are those that are consumed; each message is handled once in each of the groups.
	topics, groups []string
	// window is how many messages may wait or run at once: the publisher waits for the handlers.
	window int
}

const batch = 100

// run publishes and handles everything, and returns when the broker says that all of it is acknowledged.
func (f flow) run(ctx context.Context, b *ferry.Broker) error {
	var handled atomic.Int64
	stop, err := f.consume(ctx, b, &handled)
	if err != nil {
		return err
	}
	err = f.publish(ctx, b, &handled)
	if err == nil {
		err = f.settled(ctx, b)
	}
	if ended := stop(); err == nil {
		err = ended
	}
	return err
}

// consume starts a worker with a handler for each topic and group.
func (f flow) consume(ctx context.Context, b *ferry.Broker, handled *atomic.Int64) (stop func() error, err error) {
	w := worker.New(b, worker.Options{})
	for _, topic := range f.topics {
		for _, group := range f.groups {
			worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
				handled.Add(1)
				return nil
			}, worker.Group(group))
		}
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	select {
	case <-w.Ready():
		return stop, nil
	case err := <-ended:
		cancel()
		return nil, fmt.Errorf("the worker ended before it was ready: %w", errors.Join(err, context.Cause(ctx)))
	}
}

// publish publishes everything, a window ahead of the handlers at most.
func (f flow) publish(ctx context.Context, b *ferry.Broker, handled *atomic.Int64) error {
	each := int64(len(f.groups))
	for sent := 0; sent < f.total; {
		if int64(sent)-handled.Load()/each > int64(f.window) {
			if err := pause(ctx, 50*time.Microsecond); err != nil {
				return err
			}
			continue
		}
		ms := make([]*ferry.Message, min(batch, f.total-sent, f.window))
		for i := range ms {
			ms[i] = f.message(sent + i)
		}
		if _, err := b.PublishBatch(ctx, ms); err != nil {
			return err
		}
		sent += len(ms)
	}
	return nil
}

// settled waits until the broker says that every group has acknowledged all of its topic.
func (f flow) settled(ctx context.Context, b *ferry.Broker) error {
	for _, topic := range f.topics {
		for {
			st, err := b.Driver().Stats(ctx, topic)
			if err != nil {
				return err
			}
			if done(st, len(f.groups)) {
				break
			}
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				return fmt.Errorf("not everything is acknowledged (%+v): %w", st, err)
			}
		}
	}
	return nil
}

func done(st driver.TopicStats, groups int) bool {
	if len(st.Groups) < groups || st.Delayed > 0 {
		return false
	}
	for _, g := range st.Groups {
		if g.Acked < st.Published {
			return false
		}
	}
	return true
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
