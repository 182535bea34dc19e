package ferry

import (
	"context"
	"sync"

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

func newAsyncPublisher(d driver.Driver, limit int, fail bool) *asyncPublisher {
	return &asyncPublisher{batcher: newBatcher(d, 1), fail: fail, room: make(chan struct{}, limit)}
}

// publish queues msg, which the caller must not touch any more; notify is called once with its receipt.
func (a *asyncPublisher) publish(ctx context.Context, msg *Message, o driver.PublishOptions, notify func(Receipt)) error {
	if err := a.enter(ctx); err != nil {
		return err
	}
	a.mu.Lock()
	a.issued++
	a.mu.Unlock()
	a.batcher.enqueue(&request{msg: msg, options: o, notify: func(r Receipt) {
		defer a.leave() // also when the callback panics
		notify(r)
	}})
	return nil
}

func (a *asyncPublisher) enter(ctx context.Context) error {
	select {
	case a.room <- struct{}{}:
		return nil
	default:
	}
	if a.fail {
		return driver.NewError(ErrFull, "too many asynchronous publishes are under way", "wait with Flush, or raise Options.MaxAsync", nil)
	}
	select {
	case a.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		return driver.NewError(ErrNotApplied, "the publish was cancelled while it waited for room", "allow more time, or raise Options.MaxAsync", context.Cause(ctx))
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

// flush waits until everything issued before it has ended. The one sender ends them in order.
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
			return driver.NewError(ErrUnknown, "asynchronous publishes were still under way", "allow more time to flush", context.Cause(ctx))
		}
		a.mu.Lock()
	}
	a.mu.Unlock()
	return nil
}

func (a *asyncPublisher) wait() { a.batcher.wait() }
