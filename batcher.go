package ferry

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// Bounds of one gathered batch, and how many may be under way at once. Two senders keep a backend busy while the
// answer of the other one travels; more only make the batches smaller, and so does a second one where what both wait
// for is the sync of one disk.
const (
	gatherSenders   = 2
	syncedSenders   = 1
	maxGathered     = 512
	maxSentAhead    = 4096 // by one that does not wait for the answer
	maxGatheredSize = 4 << 20
)

// patience is how often a sender lets others run before it looks again for those whom it has just answered. The second
// time is for those whom another processor took over (BenchmarkCallers of driver/redis; more gained nothing).
const patience = 2

// batcher turns concurrent single publishes into batches. A caller that finds nobody sending sends at once, alone, in
// its own goroutine: no latency is added when idle. Callers that come while all senders are busy queue up, and the
// first sender that finishes takes them all. A sender goroutine lives only while there is a queue.
type batcher struct {
	sender  sender
	ahead   driver.Pipeliner // nil where the sender is none, and with several senders
	senders int

	mu     sync.Mutex
	active int // senders busy, callers that send for themselves included
	queue  []*request
	group  sync.WaitGroup // sender goroutines
}

// request is one message in the queue. Its publisher owns it until it is queued, the sender after that, and whoever
// waits again once done is closed or later is answered.
type request struct {
	msg     *Message
	options driver.PublishOptions
	receipt Receipt
	done    chan struct{} // closed when receipt is set; nil with later
	later   *pending      // instead of done

	batch *batch // set when a sender took it

	own  Message // what msg is, and its body, where nothing else of it need be copied
	body []byte
}

// requests of publishers that wait are reused, with their bodies, when their message is certainly stored: that is one
// allocation instead of four (BenchmarkCallers of driver/redis). Their channels are not: one that was made in a bubble
// of synctest must not be used outside.
var requests = sync.Pool{New: func() any { return new(request) }}

// hold copies a message, whose publisher may give up and use it again while a sender still reads it.
func (r *request) hold(p *publication) {
	r.options, r.done = p.send, make(chan struct{})
	if p.msg.Headers != nil || p.msg.Retry != nil {
		r.msg = p.msg.Clone()
		return
	}
	r.own, r.msg = p.msg, &r.own
	r.body = append(r.body[:0], p.msg.Body...)
	r.own.Body = r.body
}

// end returns the receipt. The sender is done with the request, and so is the driver unless something went wrong.
func (r *request) end() Receipt {
	receipt := r.receipt
	if receipt.Err == nil && cap(r.body) <= mostKept {
		*r = request{body: r.body}
		requests.Put(r)
	}
	return receipt
}

// batch is a set of requests under way. Its context ends when every waiter has given up.
type batch struct {
	waiting int // guarded by batcher.mu
	cancel  context.CancelFunc
}

func newBatcher(to sender, senders int) *batcher {
	b := &batcher{sender: to, senders: senders}
	if senders == 1 {
		b.ahead, _ = to.(driver.Pipeliner)
	}
	return b
}

// publish sends one message, alone or with others, and returns its receipt.
func (b *batcher) publish(ctx context.Context, p *publication) Receipt {
	b.mu.Lock()
	if b.active < b.senders && len(b.queue) == 0 {
		b.active++
		b.mu.Unlock()
		defer b.handOver()
		return sendAlone(ctx, b.sender, p)
	}
	r := requests.Get().(*request)
	r.hold(p)
	b.queue = append(b.queue, r)
	b.mu.Unlock()

	select {
	case <-r.done:
		return r.end()
	case <-ctx.Done():
		return b.giveUp(ctx, r)
	}
}

// sendAlone publishes one message in the caller's goroutine, with the caller's context.
func sendAlone(ctx context.Context, to sender, p *publication) Receipt {
	p.alone[0] = &p.msg
	receipts, err := to.Publish(ctx, p.alone[:], p.send)
	if len(receipts) != 1 {
		return Receipt{ID: p.msg.ID, Err: errors.Join(ErrUnknown, err)}
	}
	return receipts[0]
}

// giveUp ends the wait for r: it was never sent if it is still queued, otherwise its outcome is unknown.
func (b *batcher) giveUp(ctx context.Context, r *request) Receipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == r {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			return Receipt{ID: r.msg.ID, Err: driver.NewError(ErrNotApplied, "the publish was cancelled before it was sent",
				"allow more time, or publish less at once", context.Cause(ctx))}
		}
	}
	select {
	case <-r.done: // the answer came while ctx ended
		return r.receipt
	default:
	}
	if r.batch.waiting--; r.batch.waiting == 0 {
		r.batch.cancel()
	}
	return Receipt{ID: r.msg.ID, Err: driver.NewError(ErrUnknown, "the publish was cancelled while it was being sent",
		"publish the same ID again: it is stored at most once", context.Cause(ctx))}
}

// enqueue adds a request whose publisher does not wait, and makes sure somebody sends it.
func (b *batcher) enqueue(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, r)
	if b.active < b.senders {
		b.active++
		b.group.Go(b.send)
	}
}

// handOver ends a caller's turn as sender: the queue that formed meanwhile gets a sender goroutine.
func (b *batcher) handOver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.active--
		return
	}
	b.group.Go(b.send)
}

// send publishes batches until the queue is empty.
func (b *batcher) send() {
	if b.ahead != nil {
		b.sendAhead()
		return
	}
	for {
		ctx, cancel := context.WithCancel(context.Background())
		requests, msgs := b.take(cancel, maxGathered)
		if len(requests) == 0 {
			cancel()
			return
		}
		receipts, err := b.sender.Publish(ctx, msgs, requests[0].options)
		cancel()
		waiting := b.queued()
		b.answer(requests, receipts, err)
		b.invite(waiting + len(requests))
	}
}

// invite lets those who were just answered, and publish again at once, come to those who wait already. Without it the
// sender would find the queue empty and end, and the first of them would travel alone; or they would take turns with
// those who wait.
func (b *batcher) invite(all int) {
	for range patience {
		if b.queued() >= all {
			return
		}
		runtime.Gosched()
	}
}

// sent is a batch that waits for its answer.
type sent struct {
	requests []*request
	cancel   context.CancelFunc
	wait     func() ([]Receipt, error)
}

// sendAhead is send for one sender that does not wait for the answer before it sends the next batch, but for the one
// before that: so the backend always has something to do, and batches still grow while it does.
func (b *batcher) sendAhead() {
	for {
		var answers sync.WaitGroup
		under := make(chan sent)
		answers.Go(func() {
			for s := range under {
				receipts, err := s.wait()
				s.cancel()
				b.answer(s.requests, receipts, err)
			}
		})
		for b.queued() > 0 {
			ctx, cancel := context.WithCancel(context.Background())
			requests, msgs := b.take(cancel, maxSentAhead)
			under <- sent{requests, cancel, b.ahead.Send(ctx, msgs, requests[0].options)}
		}
		close(under)
		answers.Wait() // before another sender can begin, so that all are answered in order
		if b.ended() {
			return
		}
	}
}

// queued returns how many wait for a sender.
func (b *batcher) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// ended ends the turn of a sender, unless there is something to send again.
func (b *batcher) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		return false
	}
	b.active--
	b.queue = nil // lets a large backing array go
	return true
}

// take removes the next batch from the queue: equal options, bounded in number and size.
func (b *batcher) take(cancel context.CancelFunc, most int) ([]*request, []*Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < len(b.queue) && n < most && b.queue[n].options == b.queue[0].options {
		size += len(b.queue[n].msg.Body)
		if n > 0 && size > maxGatheredSize {
			break
		}
		n++
	}
	if n == 0 {
		b.active--
		b.queue = nil // lets a large backing array go
		return nil, nil
	}
	requests := b.queue[:n:n]
	b.queue = b.queue[n:]
	under := &batch{waiting: n, cancel: cancel}
	msgs := make([]*Message, n)
	for i, r := range requests {
		r.batch, msgs[i] = under, r.msg
	}
	return requests, msgs
}

// answer hands each request its receipt.
func (b *batcher) answer(requests []*request, receipts []Receipt, err error) {
	if len(receipts) != len(requests) { // a driver that answers nothing has stored nothing that it can tell of
		receipts = make([]Receipt, len(requests))
		for i, r := range requests {
			receipts[i] = Receipt{ID: r.msg.ID, Err: errors.Join(ErrUnknown, err)}
		}
	}
	if requests[0].later != nil { // then all are
		for i, r := range requests {
			r.later.answer(receipts[i])
		}
		return
	}
	b.mu.Lock() // giveUp looks at done and receipt under it
	defer b.mu.Unlock()
	for i, r := range requests {
		r.receipt = receipts[i]
		close(r.done) // from here on it is its publisher's
	}
}

// wait returns when no sender goroutine is left.
func (b *batcher) wait() { b.group.Wait() }
