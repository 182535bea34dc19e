package consumer

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// member is this process in one group of one topic: all its subscriptions share the partitions it owns.
type member struct {
	*queue
	cluster.Membership
	d                   *Groups
	topic               *registry.TopicState
	group               string
	mainName, retryName string
	nonce               string
	tenure              tenure
	cl                  *kgo.Client

	saver        saver
	executor     executor
	transactions transactions

	// Guarded by mu of queue.
	parts       map[int32]*partition
	subs        map[*subscription]struct{}
	left        bool
	sure        time.Time        // see vouched
	calm        time.Time        // when the last question was sent that was answered outside a rebalance
	heard       time.Time        // see rejoined
	assignedAs  cluster.Identity // when partitions were assigned last
	stopped     bool             // the topic or the group is paused
	Bad         []invalid        // found by a visit
	barred      error            // why the group or the topic may not be consumed
	buffer      *pollBuffer      // of what is fed
	passes      uint64           // steps of settlements
	suspects    []*Item          // whose count of lost leases must be stored
	windowFreed cluster.Signal   // lets poll look again whether it may fetch
	saving      cluster.Signal   // lets keepSaving look for suspects
	joined      bool             // partitions were assigned
	coming      map[int32]bool   // assigned, and not loaded yet
	cut         []int32          // whose logs have lost their ends; see retake
	draining    bool             // none of subs receives any more
	kept        []int32          // what the group was told with the last join that we keep while we drain
	commands    []queuedCommand  // commands from elsewhere
	commanded   cluster.Signal
	unsure      cluster.Signal // lets keepVouched ask now

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (d *Groups) newMember(t *registry.TopicState, group string, order driver.Order) *member {
	m := &member{tenure: ownership{}, queue: newQueue(order), d: d, topic: t, group: group,
		mainName: d.cluster.MainTopic(t.Name), retryName: d.cluster.RetryTopic(t.Name, group),
		nonce: rand.Text()[:8], parts: map[int32]*partition{}, subs: map[*subscription]struct{}{}, coming: map[int32]bool{},
		windowFreed: cluster.NewSignal(), saving: cluster.NewSignal(), commanded: cluster.NewSignal(),
		unsure: cluster.NewSignal()}
	m.saver, m.executor, m.transactions = saver{m}, executor{m}, transactions{m}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// join makes this process a member of the Kafka group.
func (m *member) join() error {
	m.d.tables.Acquaint(m.retryName)
	var err error
	m.cl, err = m.d.cluster.NewClient(append(
		m.d.cluster.GroupOptions(m.d.cluster.GroupID(m.topic.Name, m.group), m.mainName),
		kgo.Balancers(newBalancer(m.keeps)),
		// the next coordinator begins with a session for everybody; whether our partitions are ours, vouched decides
		kgo.RetryTimeout(cluster.StorePatience), kgo.MetadataMaxAge(cluster.LookEvery), kgo.FetchMaxBytes(16<<20),
		kgo.AdjustFetchOffsetsFn(m.assign), kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.revoke),
		kgo.OnPartitionsLost(m.lose))...)
	if err != nil {
		return err
	}
	ctx := m.ctx
	for _, task := range []func(context.Context){m.keepVouched, m.keepLooking, m.saver.keepSaving, m.poll,
		m.executor.obey, m.keepTime, m.keepCommitting} {
		m.tasks.Go(func() { task(ctx) })
	}
	return nil
}

// poll feeds the queue until the member leaves, and stops fetching while the window is full.
func (m *member) poll(ctx context.Context) {
	for {
		m.mu.Lock()
		full, free := m.full(), cluster.WindowItems-m.window
		m.mu.Unlock()
		if full {
			select {
			case <-ctx.Done():
				return
			case <-m.windowFreed:
			case <-time.After(cluster.CommitEvery):
			}
			continue
		}
		fetches := m.cl.PollRecords(ctx, free)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			m.cl.AllowRebalance()
			return
		}
		m.bar(fetches.Err())
		bad := m.feedAll(fetches)
		m.retake(ctx)
		m.cl.AllowRebalance()
		if len(bad) > 0 {
			m.quarantine(ctx, bad)
		}
		m.saver.saveSuspects(ctx)
		if fetches.Err() != nil && cluster.Pause(ctx, cluster.FetchWait) != nil {
			return
		}
	}
}

// bar notes that the brokers do not let us consume, and why.
func (m *member) bar(err error) {
	if err == nil || !cluster.IsForbidden(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.barred = err
	m.wakeAll()
}

// feedAtOnce is how many records are taken over before others may use the queue again.
const feedAtOnce = 500

func (m *member) feedAll(fetches kgo.Fetches) (bad []invalid) {
	now := time.Now()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Attrs.TimestampType() == 1 { // the broker's own
			m.d.cluster.Clock.Fetched(p.Records[n-1].Timestamp, now)
		}
	})
	all, poll := make([]fetched, 0, feedAtOnce), &pollBuffer{}
	take := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.buffer, m.instant = poll, time.Now()
		var p *partition
		for _, f := range all {
			if p == nil || p.id != f.r.Partition {
				p = m.parts[f.r.Partition]
			}
			if p == nil || p.lost || slices.Contains(m.cut, p.id) {
				continue
			}
			if f.r.Offset < p.done.Next {
				if p.done.Overlaid(f.r) {
					m.cut = append(m.cut, p.id)
				}
				continue
			}
			if r, problem := p.feed(f); r != nil {
				bad = append(bad, invalid{p, r, problem})
			}
		}
		all, m.instant = all[:0], time.Time{}
	}
	fetches.EachRecord(func(r *kgo.Record) {
		if all = append(all, m.decode(r)); len(all) == feedAtOnce {
			take()
		}
	})
	take()
	return bad
}

// leave releases what is held, commits, and leaves the group.
func (m *member) leave(ctx context.Context) {
	m.mu.Lock()
	if m.left {
		m.mu.Unlock()
		return
	}
	m.left = true
	m.wakeAll()
	var notices []*kgo.Record
	for s := range m.subs {
		s.giveUp()
		notices = append(notices, s.lastNotices(time.Now())...)
	}
	ps, ids := slices.Collect(maps.Values(m.parts)), slices.Collect(maps.Keys(m.parts))
	m.mu.Unlock()
	m.saver.tell(ctx, notices)
	m.awaitSettling(ctx, ps)
	m.commitLast(ctx, ps)
	m.endTasks()
	if m.cl != nil {
		m.cl.CloseAllowingRebalance()
	}
	m.tasks.Wait()
	m.drop(ids)
}

// awaitSettling waits a while for settlements on their way.
func (m *member) awaitSettling(ctx context.Context, ps []*partition) {
	ctx, cancel := context.WithTimeout(ctx, cluster.DrainFor)
	defer cancel()
	m.drain(ctx, ps)
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
	ids := slices.Collect(maps.Keys(m.parts))
	m.mu.Unlock()
	m.drop(ids)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = false
	clear(m.coming)
	m.ctx, m.cancel = context.WithCancel(context.Background())
}
