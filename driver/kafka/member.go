package kafka

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// member is this process in one group of one topic: all its subscriptions share the partitions it owns.
type member struct {
	*queue
	d                  *Driver
	topic              *topicState
	group              string
	mainName, sideName string
	nonce              string
	visiting           bool // looks at a group without joining it
	cl                 *kgo.Client

	// Guarded by mu of queue.
	parts      map[int32]*partition
	metas      map[int32]string
	subs       map[*subscription]struct{}
	generation int32
	memberID   string
	left       bool
	stopped    bool      // the topic or the group is paused
	bad        []invalid // found by a visit
	suspects   []*item   // whose count of lost leases must be stored
	room       chan struct{}
	saving     chan struct{}
	joined     bool           // partitions were assigned
	coming     map[int32]bool // assigned, and not loaded yet
	asked      []asked        // commands from elsewhere
	called     chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (d *Driver) newMember(t *topicState, group string, order driver.Order) *member {
	m := &member{queue: newQueue(order), d: d, topic: t, group: group, mainName: d.mainTopic(t.name), sideName: d.sideTopic(t.name, group),
		nonce: rand.Text()[:8], parts: map[int32]*partition{}, metas: map[int32]string{}, subs: map[*subscription]struct{}{}, coming: map[int32]bool{}, room: make(chan struct{}, 1), saving: make(chan struct{}, 1), called: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// join makes this process a member of the Kafka group.
func (m *member) join() error {
	var err error
	m.cl, err = kgo.NewClient(m.d.clientOptions(
		kgo.ConsumerGroup(m.d.groupID(m.topic.name, m.group)), kgo.ConsumeTopics(m.mainName), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // never skip what is unread
		kgo.SessionTimeout(m.d.o.Session), kgo.HeartbeatInterval(m.d.o.Session/6), kgo.RebalanceTimeout(rebalance), kgo.FetchMaxWait(2*fetchWait), kgo.FetchMaxBytes(16<<20),
		kgo.OnOffsetsFetched(m.offsetsFetched), kgo.AdjustFetchOffsetsFn(m.assign),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, got map[string][]int32) { m.assigned(cl, got[m.mainName]) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
			m.revoke(ctx, cl, lost[m.mainName])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { m.drop(lost[m.mainName]) }),
	)...)
	if err != nil {
		return driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
	}
	m.tasks.Add(5)
	go m.keepSaving(m.ctx)
	go m.poll(m.ctx)
	go m.obey(m.ctx)
	go m.keepTime(m.ctx)
	go m.keepCommitting(m.ctx)
	return nil
}

// assigned is told what a rebalance brings. It is loaded by assign.
func (m *member) assigned(cl *kgo.Client, ids []int32) {
	m.noteGeneration(cl)
	m.endOpen(ids)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = true
	for _, id := range ids {
		m.coming[id] = true
	}
	m.wakeAll()
}

// noteGeneration is given the client, since callbacks begin before its maker has returned it.
func (m *member) noteGeneration(cl *kgo.Client) {
	id, generation := cl.GroupMetadata()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.memberID, m.generation = id, generation
}

func (m *member) offsetsFetched(_ context.Context, _ *kgo.Client, r *kmsg.OffsetFetchResponse) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	eachMetadata(r, func(p int32, text string) { m.metas[p] = text })
	return nil
}

// assign loads new partitions before anything is fetched from them.
func (m *member) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for id, o := range offsets[m.mainName] {
		m.mu.Lock()
		metadata := m.metas[id]
		m.mu.Unlock()
		p, err := m.load(ctx, id, max(0, o.EpochOffset().Offset), metadata)
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.parts[id] = p
		delete(m.coming, id)
		m.wakeAll()
		m.mu.Unlock()
	}
	return offsets, nil
}

// poll feeds the queue until the member leaves, and stops fetching while the window is full.
func (m *member) poll(ctx context.Context) {
	defer m.tasks.Done()
	for {
		m.mu.Lock()
		full, free := m.full(), windowItems-m.window
		m.mu.Unlock()
		if full {
			select {
			case <-ctx.Done():
				return
			case <-m.room:
			case <-time.After(commitEvery):
			}
			continue
		}
		fetches := m.cl.PollRecords(ctx, free)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			m.cl.AllowRebalance()
			return
		}
		bad := m.feedAll(fetches)
		m.cl.AllowRebalance()
		if len(bad) > 0 {
			m.quarantine(ctx, bad)
		}
		m.saveSuspects(ctx)
		if fetches.Err() != nil && pause(ctx, fetchWait) != nil {
			return
		}
	}
}

func (m *member) feedAll(fetches kgo.Fetches) (bad []invalid) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		p := m.parts[r.Partition]
		if p == nil || p.lost || r.Offset < p.done.next {
			return
		}
		if r, problem := p.feed(r); r != nil {
			bad = append(bad, invalid{p, r, problem})
		}
	})
	return bad
}

// revoke lets the holders of deliveries finish, then commits. It returns when the partitions may go to others.
func (m *member) revoke(ctx context.Context, cl *kgo.Client, ids []int32) {
	if len(ids) == 0 {
		return
	}
	m.noteGeneration(cl) // in a cooperative rebalance the partitions are ours in the new generation too
	ctx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	m.mu.Lock()
	going := m.stopHanding(ids)
	held := map[*subscription][]*driver.Delivery{}
	for _, p := range going {
		for _, it := range p.items {
			if it.claimed != nil {
				held[it.claimed.sub] = append(held[it.claimed.sub], it.claimed.delivery)
			}
		}
	}
	m.mu.Unlock()
	var calls sync.WaitGroup
	for s, ds := range held {
		if s.o.Revoking != nil {
			calls.Go(func() { s.o.Revoking(ctx, ds) })
		}
	}
	m.drain(ctx, going)
	calls.Wait()
	m.commitLast(context.WithoutCancel(ctx), going)
	m.drop(ids)
}

// stopHanding takes what is not held out of the queue.
func (m *member) stopHanding(ids []int32) (going []*partition) {
	for _, id := range ids {
		p := m.parts[id]
		if p == nil {
			continue
		}
		going = append(going, p)
		for _, it := range p.items {
			if it.state == ready || it.state == waiting {
				m.enter(it, gone)
				m.detach(it)
				m.uncount(it)
			}
		}
	}
	return going
}

// drain waits until nothing of the partitions is held.
func (m *member) drain(ctx context.Context, ps []*partition) {
	for {
		m.mu.Lock()
		held := false
		for _, p := range ps {
			for _, it := range p.items {
				held = held || it.claimed != nil
			}
		}
		wake := m.await()
		m.mu.Unlock()
		if !held {
			return
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// drop forgets partitions without committing: leases on them are lost.
func (m *member) drop(ids []int32) {
	m.mu.Lock()
	dropped := m.stopHanding(ids)
	for _, p := range dropped {
		p.lost = true
		for _, it := range p.items {
			if it.claimed != nil {
				m.end(it.claimed)
			}
			if it.state != gone {
				m.enter(it, gone)
				m.detach(it)
			}
			m.uncount(it)
		}
		delete(m.parts, p.id)
		delete(m.coming, p.id)
	}
	m.wakeAll()
	m.mu.Unlock()
	for _, p := range dropped {
		p.close()
	}
}

// leave releases what is held, commits, and leaves the group.
func (m *member) leave(ctx context.Context) {
	m.mu.Lock()
	if m.left {
		m.mu.Unlock()
		return
	}
	m.left = true
	for s := range m.subs {
		s.giveUp()
	}
	var ps []*partition
	for _, p := range m.parts {
		ps = append(ps, p)
	}
	m.mu.Unlock()
	m.commitLast(ctx, ps)
	m.endTasks()
	if m.cl != nil {
		m.cl.CloseAllowingRebalance()
	}
	m.tasks.Wait()
	var ids []int32
	for _, p := range ps {
		ids = append(ids, p.id)
	}
	m.drop(ids)
}

// endTasks lets no new task begin, and ends the others.
func (m *member) endTasks() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel()
}

// suspend leaves the group and keeps the subscriptions, for join to follow.
func (m *member) suspend() {
	m.endTasks()
	m.cl.CloseAllowingRebalance()
	m.tasks.Wait()
	m.mu.Lock()
	var ids []int32
	for id := range m.parts {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	m.drop(ids)
	m.mu.Lock()
	m.joined = false
	clear(m.coming)
	m.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx, m.cancel = context.WithCancel(context.Background())
}

// invalid is a record that cannot be decoded.
type invalid struct {
	p       *partition
	r       *kgo.Record
	problem error
}

// quarantine stores broken records whole among the invalid of the topic, then their offsets are done. The key is the
// place they were found at, so that several groups store them once.
func (m *member) quarantine(ctx context.Context, bad []invalid) {
	for _, b := range bad {
		if err := m.d.produce(ctx, m.d.invalidRecord(m.topic.name, b.r, b.problem)); err != nil && !errors.Is(err, driver.ErrTooLarge) {
			continue // not done: it comes again with the next owner
		}
		m.mu.Lock()
		b.p.done.set(b.r.Offset)
		b.p.dirty = true
		m.mu.Unlock()
	}
}
