package ferry

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Future is the receipt of an asynchronous publish, to come.
type Future struct {
	done    chan struct{}
	receipt Receipt
}

// Done is closed when the receipt is there.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait returns the receipt, and its error, once it is there.
func (f *Future) Wait(ctx context.Context) (Receipt, error) {
	select {
	case <-f.done:
		return f.receipt, f.receipt.Err
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
}

// asyncPublisher bounds the asynchronous publishes under way. It has one sender, so that messages keep their order.
type asyncPublisher struct {
	batcher *batcher
	fail    bool // ErrFull instead of waiting
	room    chan struct{}

	mu     sync.Mutex
	issued uint64
	ended  uint64        // receipts handed out
	change chan struct{} // closed and replaced whenever ended grows and somebody flushes
}

func newAsyncPublisher(to sender, limit int, fail bool) *asyncPublisher {
	return &asyncPublisher{batcher: newBatcher(to, 1), fail: fail, room: make(chan struct{}, limit)}
}

// pending is one asynchronous publish.
type pending struct {
	publication
	request request
	body    []byte // a copy of the message's
	broker  *Broker
	ctx     context.Context // of its publisher, for what it carries
	start   time.Time
	done    func(Receipt)
}

// publish queues p, which the caller must not touch any more.
func (a *asyncPublisher) publish(ctx context.Context, p *pending) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.issued++
	a.mu.Unlock()
	p.request = request{msg: &p.msg, options: p.send, later: p}
	a.batcher.enqueue(&p.request)
	return nil
}

// pendings are reused, with their bodies: their receipt is the last that anybody wants of them. That is one allocation
// instead of three (BenchmarkPublish/async).
var pendings = sync.Pool{New: func() any { return new(pending) }}

// own makes the message independent of its publisher, who may change it once the call has returned.
func (p *pending) own() {
	if p.msg.Headers != nil || p.msg.Retry != nil {
		p.msg = *p.msg.Clone()
		return
	}
	p.body = append(p.body[:0], p.msg.Body...)
	p.msg.Body = p.body
}

// answer hands out the receipt, once.
func (p *pending) answer(r Receipt) {
	b := p.broker
	defer b.async.leave() // also when the callback panics
	defer logPanic(p.ctx, b.log, "PublishFunc callback")
	done := p.done
	if b.hooks.Published != nil {
		b.published(context.WithoutCancel(p.ctx), &p.msg, r, time.Since(p.start))
	}
	if r.Err == nil { // otherwise it may still be under way
		p.reuse()
	}
	done(r)
}

// mostKept bounds bodies that are kept to be used again.
const mostKept = 16 << 10

func (p *pending) reuse() {
	body := p.body
	if cap(body) > mostKept {
		body = nil
	}
	*p = pending{body: body}
	pendings.Put(p)
}

func (a *asyncPublisher) enter(ctx context.Context) error {
	select {
	case a.room <- struct{}{}:
		return nil
	default:
	}
	if a.fail {
		return driver.NewError(ErrFull, "too many asynchronous publishes are under way",
			"wait with Flush, or raise Options.MaxAsync", nil)
	}
	select {
	case a.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return driver.NewError(ErrNotApplied, "the publish was cancelled while it waited for room",
			"allow more time, or raise Options.MaxAsync", context.Cause(ctx))
	}
}

func (a *asyncPublisher) leave() {
	<-a.room
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended++
	if a.change != nil {
		close(a.change)
		a.change = nil
	}
}

// flush waits until everything issued before it has ended. They are answered in order.
func (a *asyncPublisher) flush(ctx context.Context) error {
	a.mu.Lock()
	target := a.issued
	for a.ended < target {
		if a.change == nil {
			a.change = make(chan struct{})
		}
		change := a.change
		a.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return driver.NewError(ErrUnknown, "asynchronous publishes were still under way",
				"allow more time to flush", context.Cause(ctx))
		}
		a.mu.Lock()
	}
	a.mu.Unlock()
	return nil
}

func (a *asyncPublisher) wait() { a.batcher.wait() }
