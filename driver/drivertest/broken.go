package drivertest

import (
	"context"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// broken is a driver with one defect: a hook that is set changes what the call does. Each hook is given the driver or
// subscription below it, so that a defect is a few lines.
type broken struct {
	driver.Driver

	publish func(ctx context.Context, below driver.Driver, ms []*driver.Message,
		o driver.PublishOptions) ([]driver.Receipt, error)
	subscribe func(o *driver.SubscribeOptions)
	receive   func(ctx context.Context, below driver.Subscription, most int) ([]*driver.Delivery, error)
	delivered func(d *driver.Delivery)
	settle    func(ctx context.Context, below driver.Subscription, ss []driver.Settlement) []error
	extend    func(ctx context.Context, below driver.Subscription, ds []*driver.Delivery) []error
	begin     func(ds []*driver.Delivery) []error
	drain     func() error
	leave     func(ctx context.Context, below driver.Subscription) error

	configured func(c *driver.TopicConfig)
	grouped    func(o *driver.GroupOptions)
	pause      func() error
	purge      func(ctx context.Context, below driver.Driver, topic, group string) (int, error)
	remove     func(ts []driver.Target) []error
	move       func(ms []driver.Move) []error
	stats      func(s *driver.TopicStats, err error) error
	query      func(q *driver.Query)
	page       func(p *driver.Page)
	caps       func(c *driver.Capabilities)
	kv         *brokenKV

	mu   sync.Mutex
	note map[string]*driver.Message // what a defect remembers of messages, by id
	held map[*driver.Delivery]driver.Subscription
	n    int
}

// Unwrap returns the driver below.
func (b *broken) Unwrap() driver.Driver { return b.Driver }

// unwrapped returns the driver below all defects.
func unwrapped(d driver.Driver) driver.Driver {
	for {
		w, ok := d.(interface{ Unwrap() driver.Driver })
		if !ok {
			return d
		}
		d = w.Unwrap()
	}
}

// remember keeps a message by its id.
func (b *broken) remember(m *driver.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.note == nil {
		b.note = map[string]*driver.Message{}
	}
	b.note[m.ID] = m
}

func (b *broken) recall(id string) *driver.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.note[id]
}

// count returns 1, 2, 3, ...
func (b *broken) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	return b.n
}

func (b *broken) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	if b.publish != nil {
		return b.publish(ctx, b.Driver, ms, o)
	}
	return b.Driver.Publish(ctx, ms, o)
}

func (b *broken) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	if b.subscribe != nil {
		b.subscribe(&o)
	}
	s, err := b.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &brokenSubscription{s, b}, nil
}

func (b *broken) Capabilities() driver.Capabilities {
	c := b.Driver.Capabilities()
	if b.caps != nil {
		b.caps(&c)
	}
	return c
}

func (b *broken) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	if b.configured != nil {
		b.configured(&c)
	}
	return b.Driver.EnsureTopic(ctx, topic, c)
}

func (b *broken) EnsureGroup(ctx context.Context, topic, group string, o driver.GroupOptions) error {
	if b.grouped != nil {
		b.grouped(&o)
	}
	return b.Driver.EnsureGroup(ctx, topic, group, o)
}

func (b *broken) Pause(ctx context.Context, topic, group string, paused bool) error {
	if b.pause != nil {
		return b.pause()
	}
	return b.Driver.Pause(ctx, topic, group, paused)
}

func (b *broken) Purge(ctx context.Context, topic, group string) (int, error) {
	if b.purge != nil {
		return b.purge(ctx, b.Driver, topic, group)
	}
	return b.Driver.Purge(ctx, topic, group)
}

func (b *broken) Delete(ctx context.Context, ts []driver.Target) []error {
	if b.remove != nil {
		return b.remove(ts)
	}
	return b.Driver.Delete(ctx, ts)
}

func (b *broken) Move(ctx context.Context, ms []driver.Move) []error {
	if b.move != nil {
		return b.move(ms)
	}
	return b.Driver.Move(ctx, ms)
}

func (b *broken) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	s, err := b.Driver.Stats(ctx, topic)
	if b.stats != nil {
		err = b.stats(&s, err)
	}
	return s, err
}

func (b *broken) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	if b.query != nil {
		b.query(&q)
	}
	p, err := b.Driver.Browse(ctx, q)
	if b.page != nil {
		b.page(&p)
	}
	return p, err
}

// brokenSubscription is a subscription of a broken driver.
type brokenSubscription struct {
	driver.Subscription
	b *broken
}

func (s *brokenSubscription) Receive(ctx context.Context, most int) ([]*driver.Delivery, error) {
	receive := s.b.receive
	if receive == nil {
		receive = func(ctx context.Context, below driver.Subscription, most int) ([]*driver.Delivery, error) {
			return below.Receive(ctx, most)
		}
	}
	ds, err := receive(ctx, s.Subscription, most)
	s.b.hold(s.Subscription, ds)
	for _, d := range ds {
		if s.b.delivered != nil {
			s.b.delivered(d)
		}
	}
	return ds, err
}

// hold notes who holds what.
func (b *broken) hold(s driver.Subscription, ds []*driver.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = map[*driver.Delivery]driver.Subscription{}
	}
	for _, d := range ds {
		b.held[d] = s
	}
}

func (s *brokenSubscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	if s.b.settle != nil {
		return s.b.settle(ctx, s.Subscription, ss)
	}
	return s.Subscription.Settle(ctx, ss)
}

func (s *brokenSubscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	if s.b.extend != nil {
		return s.b.extend(ctx, s.Subscription, ds)
	}
	return s.Subscription.Extend(ctx, ds)
}

func (s *brokenSubscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	if s.b.begin != nil {
		return s.b.begin(ds)
	}
	return s.Subscription.Begin(ctx, ds)
}

func (s *brokenSubscription) Drain(ctx context.Context) error {
	if s.b.drain != nil {
		return s.b.drain()
	}
	return s.Subscription.Drain(ctx)
}

func (s *brokenSubscription) Close(ctx context.Context) error {
	if s.b.leave != nil {
		return s.b.leave(ctx, s.Subscription)
	}
	return s.Subscription.Close(ctx)
}
