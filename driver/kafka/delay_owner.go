package kafka

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/internal/refusal"
)

// delays is this process among those that fire what is delayed, of all topics: each owns some partitions of the tiers.
type delays struct {
	membership
	d     *Driver
	held  *index
	width int // partitions of each tier
	cl    *kgo.Client

	mu     sync.Mutex
	parts  map[int32]*tierPartition
	timers timerHeap
	bytes  int           // of timers
	synced time.Time     // all marks from before this time are known
	firing chan struct{} // closed when the round that began last is over
	ring   chan struct{}
	look   chan struct{} // asks for marks
	heard  time.Time     // when the last question was sent that the coordinator has answered; only for the one that runs rounds

	heldMu   sync.Mutex
	expiring map[string]time.Time // held messages with a TTL, by key

	unlisted atomic.Pointer[unlisted]

	fetching sync.Mutex // before mu: what is decided about fetching a partition is done before somebody decides otherwise

	commits sync.Mutex // one commit at a time
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

// startDelays makes the topics of delays, if they do not exist, and joins those who fire.
func (d *Driver) startDelays(ctx context.Context) (*delays, error) {
	d.mu.Lock()
	have, closed := d.delays, d.closed
	d.mu.Unlock()
	if closed {
		return nil, refusal.Closed()
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
		return nil, refusal.Closed()
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
	w := &delays{d: d, width: max(1, n/tiers), parts: map[int32]*tierPartition{}, ring: make(chan struct{}, 1), look: make(chan struct{}, 1)}
	w.followHeld()
	if err := w.held.sync(ctx); err != nil {
		w.held.close()
		return nil, err
	}
	name := d.delayTopic()
	w.cl, err = kgo.NewClient(d.clientOptions(kgo.ConsumerGroup(name), kgo.ConsumeTopics(name), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.BlockRebalanceOnPoll(), kgo.SessionTimeout(d.o.Session),
		kgo.HeartbeatInterval(d.o.heartbeat()), kgo.RebalanceTimeout(rebalance),
		kgo.FetchMaxWait(2*fetchWait), kgo.FetchMaxBytes(8<<20), kgo.FetchMaxPartitionBytes(256<<10), kgo.MaxConcurrentFetches(2),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnOffsetsFetched(w.offsetsFetched), kgo.AdjustFetchOffsetsFn(w.assign),
		kgo.OnPartitionsAssigned(func(ctx context.Context, cl *kgo.Client, got map[string][]int32) { w.assigned(ctx, cl, got[name]) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, ps map[string][]int32) { w.revoke(ctx, cl, ps[name]) }),
		kgo.OnPartitionsLost(func(ctx context.Context, cl *kgo.Client, ps map[string][]int32) { w.revoke(ctx, cl, ps[name]) }))...) // the commit is refused if we are no member
	if err != nil {
		w.held.close()
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.tasks.Add(4)
	go w.readMarks(run)
	go w.poll(run)
	go w.run(run)
	go w.keep(run)
	return w, nil
}

func (w *delays) close() {
	ctx, cancel := context.WithTimeout(context.Background(), drainFor)
	defer cancel()
	w.cancel()
	w.tasks.Wait()    // first the last round ends, then it is committed
	_ = w.commit(ctx) // what cannot be committed fires again
	w.cl.CloseAllowingRebalance()
	w.drop(w.cl, w.owned())
	w.held.close()
}

// assigned is told what a rebalance brings, before the offsets are read. It is loaded by assign.
func (w *delays) assigned(ctx context.Context, cl *kgo.Client, ids []int32) {
	w.noteGeneration(cl)
	w.d.endOpen(ctx, w.d.delayTopic(), ids)
}

// assign takes over partitions where their last owner left off.
func (w *delays) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	name, sets := w.d.delayTopic(), map[int32]*doneSet{}
	for id, o := range offsets[name] {
		at := o.EpochOffset()
		sets[id] = newDoneSet(max(0, at.Offset))
		sets[id].readMetadata(w.found(id))
		sets[id].seen = at.Epoch
	}
	for deadline := time.Now().Add(w.d.o.Session); ; { // an error makes kgo give up everything that we own
		cuts, err := w.d.checkLogs(ctx, name, sets)
		if err == nil {
			for id := range cuts {
				offsets[name][id] = kgo.NewOffset().At(sets[id].base).WithEpoch(sets[id].seen)
			}
			break
		}
		if isForbidden(err) || time.Now().After(deadline) || pause(ctx, fetchWait/5) != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, done := range sets {
		w.parts[id] = &tierPartition{id: id, tier: int(id) / w.width, done: done, out: w.d.transactor(name, id)}
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
	firing := w.firing
	w.mu.Unlock()
	if firing != nil {
		select {
		case <-firing: // what it stores is done before the commit
		case <-ctx.Done():
		}
	}
	_ = w.commit(ctx) // what cannot be committed fires again
	w.drop(cl, ids)
}

// owned are the partitions that are ours.
func (w *delays) owned() []int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.parts))
}

func (w *delays) drop(cl *kgo.Client, ids []int32) {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	cl.ResumeFetchPartitions(map[string][]int32{w.d.delayTopic(): ids}) // if they come back, they are fetched
	for _, p := range w.forget(ids) {
		p.out.close()
	}
}

// forget removes partitions, and returns those that were there.
func (w *delays) forget(ids []int32) (forgotten []*tierPartition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if p := w.parts[id]; p != nil {
			p.lost = true
			delete(w.parts, id)
			forgotten = append(forgotten, p)
		}
	}
	w.forgetLost()
	return forgotten
}

// forgetLost removes the timers of partitions that are lost.
func (w *delays) forgetLost() {
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
