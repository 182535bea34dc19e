package kafka

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// delays is this process among those that fire what is delayed, of all topics: each owns some partitions of the tiers.
type delays struct {
	d     *Driver
	held  *table
	width int // partitions of each tier
	cl    *kgo.Client

	mu         sync.Mutex
	parts      map[int32]*tierPartition
	metas      map[int32]string
	timers     timerHeap
	bytes      int       // of timers
	synced     time.Time // all marks from before this time are known
	memberID   string
	generation int32
	ring       chan struct{}

	commits sync.Mutex // one commit at a time
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

// tierPartition is one that this process owns.
type tierPartition struct {
	id      int32
	tier    int
	done    *doneSet
	queue   []*delayed // in order; only the head may leave
	bytes   int        // of queue
	paused  bool
	lost    bool
	dirty   bool
	trimmed int64
}

// Bounds of what waits in memory, for each partition and for all timers. Beyond them messages are late, never early.
const (
	maxQueued      = 2000
	maxQueuedBytes = 2 << 20
	maxTimers      = 50_000
	maxTimersBytes = 64 << 20
	sweepEvery     = 10 * time.Second
)

type timerHeap []*delayed

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(*delayed)) }

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}

// startDelays makes the topics of delays, if they do not exist, and joins those who fire.
func (d *Driver) startDelays(ctx context.Context) (*delays, error) {
	d.mu.Lock()
	have, closed := d.delays, d.closed
	d.mu.Unlock()
	if closed {
		return nil, errClosed()
	}
	if have != nil {
		return have, nil
	}
	release, err := d.single(ctx, "delays")
	if err != nil {
		return nil, err
	}
	defer release()
	d.mu.Lock()
	have = d.delays
	d.mu.Unlock()
	if have != nil {
		return have, nil
	}
	if err := d.createTopics(ctx, topicSpec{d.heldTopic(), 1, compacted()}, topicSpec{d.delayTopic(), tiers * d.o.InternalPartitions, d.logged()}); err != nil {
		return nil, err
	}
	if r := d.meta.get(delaysKey); r == nil { // tells others that there is something to fire
		if err := d.putMeta(ctx, delaysKey, struct{}{}); err != nil {
			return nil, err
		}
	}
	w, err := d.newDelays(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	closed = d.closed
	if !closed {
		d.delays = w
	}
	d.mu.Unlock()
	if closed {
		w.close()
		return nil, errClosed()
	}
	return w, nil
}

func (d *Driver) newDelays(ctx context.Context) (*delays, error) {
	if err := d.startClock(ctx); err != nil {
		return nil, err
	}
	n, err := d.partitionsOf(ctx, d.delayTopic())
	if err != nil {
		return nil, err
	}
	w := &delays{d: d, width: max(1, n/tiers), parts: map[int32]*tierPartition{}, metas: map[int32]string{}, ring: make(chan struct{}, 1)}
	w.held = d.follow(d.heldTopic(), []int32{0}, nil)
	if err := w.held.sync(ctx); err != nil {
		w.held.close()
		return nil, err
	}
	name := d.delayTopic()
	w.cl, err = kgo.NewClient(d.clientOptions(kgo.ConsumerGroup(name), kgo.ConsumeTopics(name), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(d.o.Session), kgo.HeartbeatInterval(d.o.Session/6),
		kgo.FetchMaxWait(2*fetchWait), kgo.FetchMaxBytes(8<<20), kgo.FetchMaxPartitionBytes(256<<10), kgo.MaxConcurrentFetches(2),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnOffsetsFetched(w.offsetsFetched), kgo.AdjustFetchOffsetsFn(w.assign),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, _ map[string][]int32) { w.noteGeneration(cl) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, ps map[string][]int32) { w.revoke(ctx, cl, ps[name]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, ps map[string][]int32) { w.drop(ps[name]) }))...)
	if err != nil {
		w.held.close()
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.tasks.Add(3)
	go w.poll(run)
	go w.run(run)
	go w.keep(run)
	return w, nil
}

func (w *delays) close() {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	_ = w.commit(ctx) // what cannot be committed fires again
	w.cancel()
	w.cl.CloseAllowingRebalance()
	w.tasks.Wait()
	w.held.close()
}

func (w *delays) poke() {
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

func (w *delays) noteGeneration(cl *kgo.Client) {
	id, generation := cl.GroupMetadata()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memberID, w.generation = id, generation
}

func (w *delays) offsetsFetched(_ context.Context, _ *kgo.Client, r *kmsg.OffsetFetchResponse) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	eachMetadata(r, func(p int32, text string) { w.metas[p] = text })
	return nil
}

// assign takes over partitions where their last owner left off.
func (w *delays) assign(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, o := range offsets[w.d.delayTopic()] {
		p := &tierPartition{id: id, tier: int(id) / w.width, done: newDoneSet(max(0, o.EpochOffset().Offset))}
		p.done.readMetadata(w.metas[id])
		w.parts[id] = p
	}
	return offsets, nil
}

func (w *delays) revoke(ctx context.Context, cl *kgo.Client, ids []int32) {
	w.noteGeneration(cl)
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	w.mu.Lock()
	for _, id := range ids {
		if p := w.parts[id]; p != nil {
			p.lost = true // nothing more of it fires here
		}
	}
	w.mu.Unlock()
	_ = w.commit(ctx) // what cannot be committed fires again
	w.drop(ids)
}

func (w *delays) drop(ids []int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if p := w.parts[id]; p != nil {
			p.lost = true
			delete(w.parts, id)
		}
	}
	kept := w.timers[:0]
	w.bytes = 0
	for _, x := range w.timers {
		if !x.p.lost {
			kept = append(kept, x)
			w.bytes += x.size()
		}
	}
	clear(w.timers[len(kept):])
	w.timers = kept
	heap.Init(&w.timers)
}

// poll feeds the queues, and stops fetching for those that are full.
func (w *delays) poll(ctx context.Context) {
	defer w.tasks.Done()
	for {
		fetches := w.cl.PollRecords(ctx, 5000)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			w.cl.AllowRebalance()
			return
		}
		w.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			if p := w.parts[r.Partition]; p != nil && !p.lost && r.Offset >= p.done.next {
				w.feed(p, r)
			}
		})
		var full []int32
		for id, p := range w.parts {
			if !p.paused && (len(p.queue) >= maxQueued || p.bytes >= maxQueuedBytes) {
				p.paused = true
				full = append(full, id)
			}
		}
		w.mu.Unlock()
		if len(full) > 0 {
			w.cl.PauseFetchPartitions(map[string][]int32{w.d.delayTopic(): full})
		}
		w.cl.AllowRebalance()
		w.poke()
		if fetches.Err() != nil && pause(ctx, fetchWait) != nil {
			return
		}
	}
}

func (w *delays) feed(p *tierPartition, r *kgo.Record) {
	p.done.skipTo(r.Offset)
	p.done.next = r.Offset + 1
	if p.done.has(r.Offset) {
		p.dirty = true
		return
	}
	x, ok := readLater(r)
	if !ok { // nobody but us writes here
		p.done.set(r.Offset)
		p.dirty = true
		return
	}
	x.p, x.leave = p, r.Timestamp.Add(tierWait(p.tier))
	p.queue = append(p.queue, x)
	p.bytes += x.size()
}

// keep commits what fired every now and then, and cleans up behind.
func (w *delays) keep(ctx context.Context) {
	defer w.tasks.Done()
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	swept := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.commit(ctx); err != nil { // tried again with the next tick
			w.noteGeneration(w.cl)
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			w.trim(ctx)
			w.mu.Lock()
			mine := w.parts[0] != nil
			w.mu.Unlock()
			if mine {
				w.sweep(ctx, w.d.now())
			}
		}
	}
}

// commit stores which of the owned partitions' messages have left.
func (w *delays) commit(ctx context.Context) error {
	w.commits.Lock() // an older commit must not overtake a newer one; nothing else waits for this lock
	defer w.commits.Unlock()
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = w.d.delayTopic()
	var sent []*tierPartition
	w.mu.Lock()
	req := groupCommit(w.d.delayTopic(), w.memberID, w.generation)
	for _, p := range w.parts {
		if p.dirty {
			p.dirty = false
			sent = append(sent, p)
			t.Partitions = append(t.Partitions, commitOf(p.id, p.done.base, p.done.encode(maxMetadata)))
		}
	}
	w.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	req.Topics = append(req.Topics, t)
	err := sendCommit(ctx, w.d.client, req)
	if err != nil {
		w.mu.Lock()
		for _, p := range sent {
			p.dirty = true
		}
		w.mu.Unlock()
	}
	return err
}

// trim deletes what all have left behind.
func (w *delays) trim(ctx context.Context) {
	var offsets kadm.Offsets
	w.mu.Lock()
	for id, p := range w.parts {
		if !p.dirty && p.done.base > p.trimmed {
			p.trimmed = p.done.base
			offsets.AddOffset(w.d.delayTopic(), id, p.done.base, -1)
		}
	}
	w.mu.Unlock()
	if len(offsets) > 0 {
		_, _ = w.d.admin.DeleteRecords(ctx, offsets) // only room: tried again when more has left
	}
}
