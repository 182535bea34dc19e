package consumer

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// member is this process in one group of one topic: all its subscriptions share the partitions it owns.
type member struct {
	*queue
	cluster.Membership
	Visit               bool // it has read partitions as others left them, without joining
	Busy                bool // and others consume the group, so that only they may change anything
	FoundBad            bool // and it has put broken records in quarantine
	d                   *Groups
	topic               *registry.TopicState
	group               string
	mainName, retryName string
	nonce               string
	cl                  *kgo.Client

	saver        saver
	executor     executor
	transactions transactions

	// Guarded by mu of queue.
	parts      map[int32]*partition
	subs       map[*subscription]struct{}
	left       bool
	sure       time.Time        // see vouched
	calm       time.Time        // when the last question was sent that was answered outside a rebalance
	heard      time.Time        // see rejoined
	assignedAs cluster.Identity // when partitions were assigned last
	stopped    bool             // the topic or the group is paused
	bad        []invalid        // was fetched, and is not in quarantine yet
	barred     error            // why the group or the topic may not be consumed
	passes     uint64           // steps of settlements
	suspects   []*Item          // to be stored as they are
	ends       []*kgo.Record    // of the retry log, for which nobody waits; see ends.go
	saving     cluster.Signal   // lets keepSaving look for suspects and ends
	joined     bool             // partitions were assigned
	coming     map[int32]bool   // assigned, and not loaded yet
	cut        []int32          // whose logs have lost their ends; see retake
	draining   bool             // none of subs receives any more
	kept       []int32          // what the group was told with the last join that we keep while we drain
	commands   []queuedCommand  // commands from elsewhere
	commanded  cluster.Signal
	unsure     cluster.Signal // lets keepVouched ask now

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (d *Groups) newMember(t *registry.TopicState, group string, order driver.Order) *member {
	m := &member{queue: newQueue(order), d: d, topic: t, group: group,
		mainName: d.cluster.MainTopic(t.Name), retryName: d.cluster.RetryTopic(t.Name, group),
		nonce: rand.Text()[:8], parts: map[int32]*partition{}, subs: map[*subscription]struct{}{}, coming: map[int32]bool{},
		saving: cluster.NewSignal(), commanded: cluster.NewSignal(),
		unsure: cluster.NewSignal()}
	m.saver, m.executor, m.transactions = saver{m}, executor{m}, transactions{m}
	return m
}

// join makes this process a member of the Kafka group.
func (m *member) join() error {
	m.d.tables.Acquaint(m.retryName)
	ctx, cancel := context.WithCancel(context.Background())
	m.mu.Lock()
	m.ctx, m.cancel = ctx, cancel
	m.mu.Unlock()
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
	for _, task := range []func(context.Context){m.keepVouched, m.keepLooking, m.saver.keepSaving, m.poll,
		m.executor.obey, m.keepTime, m.keepCommitting} {
		m.tasks.Go(func() { task(ctx) })
	}
	return nil
}

// poll feeds the queue until the member leaves, and stops fetching while the window is full.
func (m *member) poll(ctx context.Context) {
	for {
		var free int
		if m.until(ctx, func() bool {
			free = cluster.WindowItems - m.window
			return !m.full()
		}) != nil {
			return
		}
		fetches := m.cl.PollRecords(ctx, free)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			m.cl.AllowRebalance()
			return
		}
		if err := fetches.Err(); cluster.IsForbidden(err) {
			m.bar(err)
		}
		m.feedAll(fetches)
		m.retake(ctx)
		m.cl.AllowRebalance()
		m.quarantine(ctx)
		if fetches.Err() != nil && cluster.Pause(ctx, cluster.FetchWait) != nil {
			return
		}
	}
}

// bar notes that the brokers do not let us consume, and why.
func (m *member) bar(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.barred = err
	m.wakeAll()
}

// feedAtOnce is how many records are taken over before others may use the queue again.
const feedAtOnce = 500

func (m *member) feedAll(fetches kgo.Fetches) {
	now, all, poll := time.Now(), make([]fetched, 0, feedAtOnce), &pollBuffer{}
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Attrs.TimestampType() == 1 { // the broker's own
			m.d.cluster.Clock.Fetched(p.Records[n-1].Timestamp, now)
		}
		for rs := range slices.Chunk(p.Records, feedAtOnce) {
			all = all[:0]
			for _, r := range rs {
				all = append(all, m.decode(r))
			}
			m.feedSome(p.Partition, all, poll)
		}
	})
}

// feedSome takes over records of a partition.
func (m *member) feedSome(id int32, some []fetched, poll *pollBuffer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parts[id]
	m.buffer, m.instant = poll, time.Now()
	for _, f := range some {
		if p == nil || p.lost || slices.Contains(m.cut, id) {
			break
		}
		if f.r.Offset >= p.done.Next {
			p.feed(f)
			p.release(p.done.Next)
		} else if p.done.Overlaid(f.r) {
			m.cut = append(m.cut, id)
		}
	}
	m.instant = time.Time{}
	m.wakeAll() // also who waits for us to come so far
}

// part closes one subscription, or all: what they hold is released. With the last one the member leaves the group.
func (m *member) part(ctx context.Context, only *subscription) {
	var notices []*kgo.Record
	m.mu.Lock()
	for s := range m.subs {
		if only == nil || s == only {
			notices = append(notices, s.giveUp(time.Now())...)
			delete(m.subs, s)
		}
	}
	leaves := len(m.subs) == 0 && !m.left
	m.left = m.left || leaves
	ps := slices.Collect(maps.Values(m.parts))
	m.wakeAll()
	m.mu.Unlock()
	m.saver.tell(ctx, notices)
	if !leaves {
		return
	}
	m.d.forget(m)
	ctx, cancel := context.WithTimeout(ctx, cluster.DrainFor)
	defer cancel()
	m.drain(ctx, ps) // settlements are on their way
	// While the group rebalances the client may take long to leave, and nothing is committed until it does.
	for err := m.CommitDirty(ctx); err != nil && !cluster.IsKafka(err, kerr.UnknownMemberID) &&
		cluster.Pause(ctx, cluster.CommitEvery) == nil; {
		err = m.CommitDirty(ctx)
	}
	m.suspend()
}

// suspend leaves the group and keeps the subscriptions, for join to follow. The client revokes what we own.
func (m *member) suspend() {
	m.mu.Lock()
	m.cancel() // no new task begins
	m.mu.Unlock()
	if m.cl != nil { // otherwise it could not join again
		m.cl.CloseAllowingRebalance()
	}
	m.tasks.Wait()
	m.mu.Lock()
	m.joined = false
	clear(m.coming)
	ids := slices.Collect(maps.Keys(m.parts))
	m.mu.Unlock()
	m.drop(ids)
}
