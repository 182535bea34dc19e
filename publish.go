package ferry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Publish encodes value and publishes it. Bytes are published as they are.
func Publish[T any](ctx context.Context, b *Broker, topic string, value T, opts ...PublishOption) (Receipt, error) {
	if b == nil {
		return Receipt{}, errNilBroker
	}
	p, err := encode(ctx, b, topic, value, opts)
	if err != nil {
		return Receipt{}, err
	}
	return b.Publish(ctx, &p.msg, opts...) // again, for those that say how it is sent
}

// NewMessage encodes value into a message, for PublishBatch and the asynchronous calls. The context is for codecs that
// ask elsewhere, a schema registry for example.
func NewMessage[T any](ctx context.Context, b *Broker, topic string, value T, opts ...PublishOption) (*Message, error) {
	if b == nil {
		return nil, errNilBroker
	}
	p, err := encode(ctx, b, topic, value, opts)
	if err != nil {
		return nil, err
	}
	if p.send != (driver.PublishOptions{}) {
		return nil, driver.NewError(ErrInvalid, "Level and Atomic say how a message is sent, not what it is",
			"give them to the publish call", nil)
	}
	return &p.msg, nil
}

func encode(ctx context.Context, b *Broker, topic string, value any, opts []PublishOption) (*publication, error) {
	p := &publication{msg: Message{Topic: topic}}
	if err := p.apply(opts); err != nil {
		return nil, err
	}
	if p.codec == nil {
		p.codec = b.codecs[0]
		if _, raw := value.([]byte); raw {
			p.codec = codec.Raw
		}
	}
	body, err := p.codec.Marshal(ctx, topic, value)
	if err != nil {
		return nil, notEncoded(p.codec, value, err)
	}
	p.msg.Body, p.msg.ContentType = body, p.codec.ContentType()
	return p, nil
}

// Publish stores one message and returns when the broker has acknowledged it. Concurrent calls travel together.
// The message is not changed: the id it was stored under is in the receipt.
func (b *Broker) Publish(ctx context.Context, m *Message, opts ...PublishOption) (Receipt, error) {
	p, start := publications.Get().(*publication), time.Now()
	if err := b.prepare(ctx, p, m, opts, start); err != nil {
		return Receipt{}, err
	}
	ctx = p.context(ctx)
	var r Receipt
	if b.goesAlone(p.send.Level) {
		r = sendAlone(ctx, b.sender, p)
	} else {
		r = b.gather.publish(ctx, p)
	}
	if b.hooks.Published != nil {
		b.published(ctx, &p.msg, r, time.Since(start))
	}
	*p = publication{}
	publications.Put(p)
	return r, r.Err
}

// goesAlone reports whether a message is not gathered with others: it would gain nothing, or might wait behind a sync
// that those of its level do not wait for.
func (b *Broker) goesAlone(level Durability) bool {
	return b.caps.Local || b.sharesSync && level != 0 && level != b.caps.Durability
}

// publications are reused: neither drivers nor the batcher nor hooks keep one, and there is one for every single
// publish: 113 bytes instead of 401 (BenchmarkPublish/direct).
var publications = sync.Pool{New: func() any { return new(publication) }}

// PublishBatch stores messages in slice order, with one receipt each. The error joins those of the receipts. Options
// apply to every message; ID, Dedup and Unique, which would make one of several, belong to each (NewMessage). Nothing
// is sent if one of them is invalid.
func (b *Broker) PublishBatch(ctx context.Context, ms []*Message, opts ...PublishOption) ([]Receipt, error) {
	if len(ms) == 0 {
		return nil, nil
	}
	if len(ms) > 1 && identify(opts) {
		return nil, driver.NewError(ErrInvalid,
			fmt.Sprintf("%d messages of a batch get one id, and would be stored once", len(ms)),
			"give ID, Dedup or Unique to each message, with NewMessage for example, not to PublishBatch", nil)
	}
	room := batches.Get().(*batchRoom)
	pubs, msgs := room.of(len(ms))
	start := time.Now()
	for i, m := range ms {
		if err := b.prepare(ctx, &pubs[i], m, opts, start); err != nil {
			b.leftOut(ctx, pubs[:i], err, start)
			return nil, fmt.Errorf("message %d of %d: %w", i+1, len(ms), err)
		}
		msgs[i] = &pubs[i].msg
	}
	receipts, err := b.sender.Publish(ctx, msgs, pubs[0].send)
	if b.hooks.Published != nil {
		took := time.Since(start)
		for i := range receipts {
			b.published(pubs[i].context(ctx), msgs[i], receipts[i], took)
		}
	}
	clear(pubs)
	batches.Put(room)
	return receipts, err
}

// identify reports whether options say which message it is.
func identify(opts []PublishOption) bool {
	if len(opts) == 0 {
		return false
	}
	p := publications.Get().(*publication)
	_ = p.apply(opts) // which prepare reports
	yes := p.msg.ID != "" || p.msg.DedupID != "" || p.msg.Unique != nil
	*p = publication{}
	publications.Put(p)
	return yes
}

// batches are reused like publications: 11 kB instead of 41 for 100 messages (BenchmarkPublish/batch_of_100).
var batches = sync.Pool{New: func() any { return new(batchRoom) }}

// batchRoom has room for the messages of one PublishBatch.
type batchRoom struct {
	pubs []publication
	msgs []*Message
}

func (r *batchRoom) of(n int) ([]publication, []*Message) {
	const most = 1024 // of more it keeps nothing
	if n > most {
		return make([]publication, n), make([]*Message, n)
	}
	if cap(r.pubs) < n {
		r.pubs, r.msgs = make([]publication, n), make([]*Message, n)
	}
	return r.pubs[:n], r.msgs[:n]
}

// PublishAsync queues a message and returns at once, or when there is room. Messages keep their order.
func (b *Broker) PublishAsync(ctx context.Context, m *Message, opts ...PublishOption) (*Future, error) {
	f := &Future{done: make(chan struct{})}
	err := b.PublishFunc(ctx, m, func(r Receipt) {
		f.receipt = r
		close(f.done)
	}, opts...)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// PublishFunc queues a message as PublishAsync does, and calls done with its receipt. While the callback runs no other
// receipt comes, and it must not wait for another asynchronous publish.
func (b *Broker) PublishFunc(ctx context.Context, m *Message, done func(Receipt), opts ...PublishOption) error {
	if done == nil {
		return driver.NewError(ErrInvalid, "the callback is nil", "use PublishAsync if the receipt is not needed here", nil)
	}
	p := pendings.Get().(*pending)
	p.broker, p.ctx, p.done, p.start = b, ctx, done, time.Now()
	if err := b.prepare(ctx, &p.publication, m, opts, p.start); err != nil {
		return err
	}
	p.ctx = p.context(ctx)
	p.own()
	err := b.async.publish(ctx, p)
	if err != nil {
		b.notSent(p.ctx, &p.publication, err, p.start)
	}
	return err
}

var errNilBroker = driver.NewError(ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)

// prepare copies m into p and makes it ready to be sent. The Published hook is told if it cannot be.
func (b *Broker) prepare(ctx context.Context, p *publication, m *Message, opts []PublishOption, now time.Time) error {
	switch {
	case b == nil:
		return errNilBroker
	case m == nil:
		return driver.NewError(ErrInvalid, "the message is nil", "publish a message", nil)
	case b.closed.Load():
		return driver.NewError(ErrClosed, "the broker is closed", "publish before Close", nil)
	}
	p.msg = *m
	err := b.ready(ctx, p, opts, now)
	if err != nil {
		b.notSent(ctx, p, err, now)
	}
	return err
}

// ready applies the options, checks everything and has the body filtered, before anything is sent.
func (b *Broker) ready(ctx context.Context, p *publication, opts []PublishOption, now time.Time) error {
	if ctx.Err() != nil {
		return driver.NewError(ErrNotApplied, "the context had ended before the publish",
			"use a live context", context.Cause(ctx))
	}
	if err := p.apply(opts); err != nil {
		return err
	}
	switch {
	case p.msg.ID != "":
		p.msg.OwnID = true
	case !p.msg.OwnID: // an empty one that was asked for is refused below
		p.msg.ID = uuid7.New(now)
	}
	if b.hooks.Publishing != nil {
		ctx = b.hooks.Publishing(ctx, &p.msg)
		p.hooked = ctx
	}
	if err := p.check(&b.caps, now); err != nil {
		return err
	}
	if b.hooks.Authorize != nil {
		if err := b.hooks.Authorize(ctx, Access{Topic: p.msg.Topic, Message: &p.msg}); err != nil {
			return err
		}
	}
	return b.ApplyFilters(ctx, &p.msg)
}

// context is that of a message on its way: what its hook returned, or the caller's.
func (p *publication) context(ctx context.Context) context.Context {
	if p.hooked != nil {
		return p.hooked
	}
	return ctx
}

func (p *publication) apply(opts []PublishOption) error {
	for _, o := range opts {
		if o != nil {
			o(p)
		}
	}
	return p.err
}

func (p *publication) check(caps *driver.Capabilities, now time.Time) error {
	if !caps.Gives(p.send.Level) {
		return caps.Refuse(p.send.Level)
	}
	if p.msg.TTL > 0 && !p.msg.At.IsZero() && p.msg.At.Sub(now) >= p.msg.TTL {
		return driver.NewError(ErrInvalid, fmt.Sprintf("TTL %v ends before the scheduled time", p.msg.TTL),
			"TTL counts from the publish: make it longer", nil)
	}
	if driver.Reserved(p.msg.Topic) {
		return driver.CheckTopic(p.msg.Topic)
	}
	return p.msg.Validate(caps.MaxBody)
}

// published tells the hook, which there is.
func (b *Broker) published(ctx context.Context, m *Message, r Receipt, took time.Duration) {
	b.hooks.Published(ctx, Event{Topic: m.Topic, Message: m, Receipt: r, Err: r.Err, Duration: took})
}

// notSent tells the hook, if there is one, of a publish that failed before it was sent: who counts or traces publishes
// learns of it nowhere else.
func (b *Broker) notSent(ctx context.Context, p *publication, err error, start time.Time) {
	if b.hooks.Published != nil {
		b.published(p.context(ctx), &p.msg, Receipt{ID: p.msg.ID, Err: err}, time.Since(start))
	}
}

// leftOut tells the hook of the messages of a batch that are ready, and not sent because of another.
func (b *Broker) leftOut(ctx context.Context, pubs []publication, cause error, start time.Time) {
	err := driver.NewError(ErrNotApplied, "another message of the batch cannot be published",
		"publish the batch without that one", cause)
	for i := range pubs {
		b.notSent(ctx, &pubs[i], err, start)
	}
}
