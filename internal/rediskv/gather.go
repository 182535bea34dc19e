package rediskv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Bounds of one gathered round trip, how many to one server may be under way, and how long one may take. Two keep a
// server busy while the answer of the other one travels; more only make them smaller.
const (
	senders      = 2
	mostGathered = 128     // writes: the server does nothing else meanwhile
	mostBytes    = 1 << 20 // of data
	tripTimeout  = 10 * time.Second
)

// gatherer sends the writes of callers that overlap in one round trip. A caller that finds a sender free sends alone,
// with its own context: nothing is added when little is written. Others queue up, and whoever has sent hands the queue
// to a goroutine that lives as long as there is one. Each server has its own queue, so that one of a cluster that does
// not answer holds up no other.
type gatherer struct {
	kv    *KV
	apart atomic.Bool // the servers take the keys of one slot in a call: they are a cluster

	mu      sync.Mutex
	queues  map[*goredis.Client]*queue
	closed  bool
	running sync.WaitGroup
}

func newGatherer(k *KV) *gatherer {
	g := &gatherer{kv: k, queues: map[*goredis.Client]*queue{}}
	_, cluster := k.o.Client.(*goredis.ClusterClient)
	g.apart.Store(cluster)
	return g
}

// queue is what waits for one server.
type queue struct {
	node   *goredis.Client
	active int // senders, callers that send for themselves included
	calls  []*call
}

// call is some writes of one bucket that wait to be sent. Their data is copied: who waits may give up, and use it
// again.
type call struct {
	bucket string
	writes []driver.Write
	bytes  int

	done  chan struct{} // closed when what follows is set
	now   int64
	reply redisconn.Reply
	err   error
}

func newCall(bucket string, ws []driver.Write) *call {
	c := &call{bucket: bucket, writes: slices.Clone(ws), done: make(chan struct{})}
	for i := range c.writes {
		c.writes[i].Data = slices.Clone(c.writes[i].Data)
		c.bytes += len(c.writes[i].Data)
	}
	return c
}

func (c *call) answer(now int64, reply redisconn.Reply, err error) {
	c.now, c.reply, c.err = now, reply, err
	close(c.done)
}

// write makes writes of one bucket, alone or with those of others.
func (g *gatherer) write(ctx context.Context, bucket string, ws []driver.Write) (now int64,
	reply redisconn.Reply, err error) {
	node, err := redisconn.NodeOf(ctx, g.kv.o.Client, g.kv.keys(bucket)[0])
	if err != nil { // a client that cannot tell, or a cluster that cannot be asked
		return g.kv.runApply(ctx, bucket, 0, ws)
	}
	q, c, err := g.enter(node, bucket, ws)
	switch {
	case err != nil:
		return 0, nil, err
	case c == nil:
		defer g.handOver(q)
		return g.kv.runApply(ctx, bucket, 0, ws)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return 0, nil, g.giveUp(ctx, q, c)
	}
	return c.now, c.reply, c.err
}

// enter queues writes, or returns no call if a sender is free: then their caller is one, until handOver.
func (g *gatherer) enter(node *goredis.Client, bucket string, ws []driver.Write) (*queue, *call, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, kv.ErrClosed()
	}
	q := g.queues[node]
	if q == nil {
		q = &queue{node: node}
		g.queues[node] = q
	}
	if q.active < senders {
		q.active++
		return q, nil, nil
	}
	c := newCall(bucket, ws)
	q.calls = append(q.calls, c)
	return q, c, nil
}

// giveUp ends the wait for c: it was never sent if it is still queued, otherwise its outcome is unknown.
func (g *gatherer) giveUp(ctx context.Context, q *queue, c *call) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(q.calls, c); i >= 0 {
		q.calls = slices.Delete(q.calls, i, i+1)
		return driver.NewError(driver.ErrNotApplied, "the write was cancelled before it was sent",
			"allow more time", context.Cause(ctx))
	}
	return driver.NewError(driver.ErrUnknown, "the write was cancelled while it was being sent",
		"read the value, or write it again under the same request", context.Cause(ctx))
}

// handOver ends a caller's turn as sender: the queue that formed meanwhile gets a goroutine.
func (g *gatherer) handOver(q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(q.calls) > 0 && !g.closed {
		g.running.Go(func() { g.send(q) })
		return
	}
	g.leave(q)
}

// leave ends a sender. A queue without one is forgotten: nodes of a cluster come and go.
func (g *gatherer) leave(q *queue) {
	if q.active--; q.active == 0 {
		delete(g.queues, q.node)
	}
}

// send empties a queue.
func (g *gatherer) send(q *queue) {
	for calls := g.take(q); len(calls) > 0; calls = g.take(q) {
		ctx, cancel := context.WithTimeout(context.Background(), tripTimeout)
		g.trip(ctx, q.node, byBucket(calls))
		cancel()
	}
}

// take returns what is sent next, and ends the sender if that is nothing.
func (g *gatherer) take(q *queue) []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, writes, bytes := 0, 0, 0
	for ; n < len(q.calls); n++ {
		writes, bytes = writes+len(q.calls[n].writes), bytes+q.calls[n].bytes
		if n > 0 && (writes > mostGathered || bytes > mostBytes) {
			break
		}
	}
	if n == 0 {
		g.leave(q)
		return nil
	}
	calls := slices.Clone(q.calls[:n])
	q.calls = slices.Delete(q.calls, 0, n)
	return calls
}

// bucketWrites are the calls of one bucket.
type bucketWrites struct {
	bucket string
	calls  []*call
	writes []driver.Write // of all calls
}

// byBucket puts together what belongs to the same bucket, in the order in which it came.
func byBucket(calls []*call) []*bucketWrites {
	var ps []*bucketWrites
	of := make(map[string]*bucketWrites, len(calls))
	for _, c := range calls {
		p := of[c.bucket]
		if p == nil {
			p = &bucketWrites{bucket: c.bucket}
			of[c.bucket], ps = p, append(ps, p)
		}
		p.calls, p.writes = append(p.calls, c), append(p.writes, c.writes...)
	}
	return ps
}

// trip sends buckets to a server in one round trip, and answers their calls. What the server did not do because of
// others is sent again alone.
func (g *gatherer) trip(ctx context.Context, node *goredis.Client, ps []*bucketWrites) {
	if len(ps) == 1 || g.apart.Load() {
		g.pipelined(ctx, node, ps)
		return
	}
	keys, args := make([]string, 0, 8*len(ps)), limits()
	for _, p := range ps {
		keys, args = append(keys, g.kv.keys(p.bucket)...), appendWrites(args, p.writes)
	}
	now, reply, err := timed(g.kv.apply.Run(ctx, node, keys, args...))
	if crossSlot(err) {
		g.apart.Store(true)
		g.pipelined(ctx, node, ps)
		return
	}
	for i, p := range ps {
		if err == nil && i < len(reply) && reply[i] == "" {
			p.answer(g.kv.runApply(ctx, p.bucket, 0, p.writes))
			continue
		}
		p.answer(now, reply.List(i), err)
	}
}

// pipelined sends the writes of each bucket as a call of its own, as a cluster demands.
func (g *gatherer) pipelined(ctx context.Context, node *goredis.Client, ps []*bucketWrites) {
	cmds := make([]*goredis.Cmd, len(ps))
	_, _ = node.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for i, p := range ps {
			cmds[i] = g.kv.apply.In(ctx, pipe, g.kv.keys(p.bucket), appendWrites(limits(), p.writes)...)
		}
		return nil
	})
	var failed error
	for i, p := range ps {
		reply, err := cmds[i].Slice()
		if notHere(err) {
			p.answer(g.kv.runApply(ctx, p.bucket, 0, p.writes))
			continue
		}
		if err = redisconn.Classify(err); err != nil {
			failed = err
		}
		now, rest, err := timed(reply, err)
		p.answer(now, rest.List(0), err)
	}
	redisconn.Relocate(ctx, g.kv.o.Client, failed)
}

// crossSlot reports whether the server is one of a cluster, which refuses keys of different slots.
func crossSlot(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "CROSSSLOT")
}

// notHere reports whether a server did not run the script because it does not know it, or has not its keys any more.
func notHere(err error) bool {
	return goredis.HasErrorPrefix(err, "NOSCRIPT") || goredis.HasErrorPrefix(err, "MOVED") ||
		goredis.HasErrorPrefix(err, "ASK")
}

// answer divides the answers to the writes of a bucket among its calls.
func (p *bucketWrites) answer(now int64, reply redisconn.Reply, err error) {
	if err == nil && len(reply) != len(p.writes) {
		err = errShape()
	}
	for _, c := range p.calls {
		if err != nil {
			c.answer(0, nil, err)
			continue
		}
		c.answer(now, reply[:len(c.writes)], nil)
		reply = reply[len(c.writes):]
	}
}

// close ends all senders. What they have not sent is answered with ErrClosed.
func (g *gatherer) close() {
	g.mu.Lock()
	g.closed = true
	for _, q := range g.queues {
		for _, c := range q.calls {
			c.answer(0, nil, kv.ErrClosed())
		}
		q.calls = nil
	}
	g.mu.Unlock()
	g.running.Wait()
}
