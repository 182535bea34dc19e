package delay

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/container"
	"github.com/ferrymq/ferry/internal/refusal"
)

// firer is this process among those that fire what is delayed, of all topics: each owns some partitions of the tiers.
type firer struct {
	cluster.Membership
	d        *Delays
	heldRows *compacted.Index
	width    int // partitions of each tier
	cl       *kgo.Client

	mu     sync.Mutex
	parts  map[int32]*tierPartition
	timers container.Heap[int64, *Delayed] // by when they ring, by the brokers' clock
	bytes  int                             // of timers
	synced time.Time                       // all marks from before this time are known
	firing chan struct{}                   // closed when the round that began last is over
	ring   cluster.Signal
	look   cluster.Signal // asks for marks
	// when the last question was sent that the coordinator has answered; only for the one that runs rounds
	heard time.Time

	heldMu   sync.Mutex
	expiring map[string]time.Time // held messages with a TTL, by key

	unlisted atomic.Pointer[unlisted]

	fetching sync.Mutex // before mu: what is decided about fetching a partition is done before somebody decides otherwise

	commits sync.Mutex // one commit at a time
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

// Delays is what is delayed or held, in all topics. This process fires it from when it first has to do with it.
type Delays struct {
	cluster  *cluster.Cluster
	tables   *compacted.Tables
	registry *registry.Registry
	firer    atomic.Pointer[firer] // nil: nothing fires here
}

// New is what nothing has to do with yet.
func New(c *cluster.Cluster, ts *compacted.Tables, r *registry.Registry) *Delays {
	return &Delays{cluster: c, tables: ts, registry: r}
}

// Started reports whether this process fires.
func (d *Delays) Started() bool { return d.firer.Load() != nil }

// Stop ends what fires here. The driver is closed: nothing starts it again.
func (d *Delays) Stop() {
	if w := d.firer.Swap(nil); w != nil {
		w.close()
	}
}

// Start makes the topics of delays, if they do not exist, and joins those who fire.
func (d *Delays) Start(ctx context.Context) (*firer, error) {
	if d.cluster.IsClosed() {
		return nil, refusal.Closed()
	}
	if have := d.firer.Load(); have != nil {
		return have, nil
	}
	release, err := d.cluster.Single(ctx, "delays")
	if err != nil {
		return nil, err
	}
	defer release()
	if have := d.firer.Load(); have != nil {
		return have, nil
	}
	o := d.cluster.Settings
	if err := d.cluster.CreateTopics(ctx, cluster.TopicSpec{Name: d.cluster.HeldTopic(), Partitions: 1},
		cluster.TopicSpec{Name: d.cluster.DelayTopic(), Partitions: tiers * o.InternalPartitions,
			MaxBody: o.MaxBody}); err != nil {
		return nil, err
	}
	if err := d.registry.Announce(ctx, cluster.DelaysKey); err != nil { // there is something to fire
		return nil, err
	}
	w, err := d.newFirer(ctx)
	if err != nil {
		return nil, err
	}
	d.firer.Store(w)
	if d.cluster.IsClosed() { // it may have been stopped before that
		d.Stop()
		return nil, refusal.Closed()
	}
	return w, nil
}

func (d *Delays) newFirer(ctx context.Context) (*firer, error) {
	if err := d.cluster.StartClock(ctx); err != nil {
		return nil, err
	}
	n, err := d.cluster.PartitionsOf(ctx, d.cluster.DelayTopic())
	if err != nil {
		return nil, err
	}
	w := &firer{d: d, width: max(1, n/tiers), parts: map[int32]*tierPartition{},
		timers: container.NewHeap[int64](func(*Delayed, int32) {}),
		ring:   cluster.NewSignal(), look: cluster.NewSignal()}
	w.followHeld()
	if err := w.heldRows.Sync(ctx); err != nil {
		w.heldRows.Close()
		return nil, err
	}
	name := d.cluster.DelayTopic()
	w.cl, err = d.cluster.NewClient(append(d.cluster.GroupOptions(name, name),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.FetchMaxBytes(8<<20), kgo.FetchMaxPartitionBytes(256<<10),
		kgo.MaxConcurrentFetches(2), kgo.AdjustFetchOffsetsFn(w.assign),
		// of what is lost the commit is refused if we are no member
		kgo.OnPartitionsAssigned(w.assigned), kgo.OnPartitionsRevoked(w.revoke), kgo.OnPartitionsLost(w.revoke))...)
	if err != nil {
		w.heldRows.Close()
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for _, task := range []func(context.Context){w.readMarks, w.poll, w.run, w.keep, w.clean} {
		w.tasks.Go(func() { task(run) })
	}
	return w, nil
}

func (w *firer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), cluster.DrainFor)
	defer cancel()
	w.cancel()
	w.tasks.Wait()    // first the last round ends, then it is committed
	_ = w.commit(ctx) // what cannot be committed fires again
	w.cl.CloseAllowingRebalance()
	w.mu.Lock()
	left := slices.Collect(maps.Keys(w.parts))
	w.mu.Unlock()
	w.drop(w.cl, left)
	w.heldRows.Close()
}

// assigned is told what a rebalance brings, before the offsets are read. It is loaded by assign.
func (w *firer) assigned(ctx context.Context, cl *kgo.Client, got map[string][]int32) {
	w.NoteGeneration(cl)
	w.d.registry.EndOpen(ctx, w.d.cluster.DelayTopic(), got[w.d.cluster.DelayTopic()])
}

// assign takes over partitions where their last owner left off.
func (w *firer) assign(ctx context.Context, from map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset,
	error) {
	name, sets := w.d.cluster.DelayTopic(), map[int32]*offsets.Set{}
	for deadline := time.Now().Add(w.d.cluster.Settings.Session); ; { // an error makes kgo give up everything that we own
		at, err := w.d.cluster.CommittedOf(ctx, name, name)
		for id, o := range from[name] {
			sets[id] = offsets.Committed(at[id])
			sets[id].Seen = o.EpochOffset().Epoch
		}
		var cuts map[int32]int64
		if err == nil {
			cuts, err = w.d.cluster.CheckLogs(ctx, name, sets)
		}
		if err == nil {
			for id := range cuts {
				from[name][id] = kgo.NewOffset().At(sets[id].Base).WithEpoch(sets[id].Seen)
			}
			break
		}
		if cluster.IsForbidden(err) || time.Now().After(deadline) || cluster.Pause(ctx, cluster.FetchWait/5) != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, done := range sets {
		w.parts[id] = &tierPartition{id: id, tier: int(id) / w.width, done: done, out: w.d.cluster.Transactor(name, id)}
	}
	return from, nil
}

func (w *firer) revoke(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	ids := lost[w.d.cluster.DelayTopic()]
	w.NoteGeneration(cl)
	ctx, cancel := context.WithTimeout(ctx, cluster.DrainFor)
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

// drop forgets partitions. Their timers are not set any more, and ring in vain.
func (w *firer) drop(cl *kgo.Client, ids []int32) {
	w.fetching.Lock()
	defer w.fetching.Unlock()
	cl.ResumeFetchPartitions(map[string][]int32{w.d.cluster.DelayTopic(): ids}) // if they come back, they are fetched
	var gone []*tierPartition
	w.mu.Lock()
	for _, id := range ids {
		if p := w.parts[id]; p != nil {
			p.lost = true
			delete(w.parts, id)
			gone = append(gone, p)
		}
	}
	w.mu.Unlock()
	for _, p := range gone {
		p.out.Close()
	}
}
