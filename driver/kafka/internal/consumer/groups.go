package consumer

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Groups are the groups that this process consumes, and what it may do to others.
type Groups struct {
	cluster   *cluster.Cluster
	tables    *compacted.Tables
	registry  *registry.Registry
	delays    *delay.Delays
	publisher *publisher.Publisher

	keys sync.Map // *liveKeys of retry logs that others own, by their topic

	mu      sync.Mutex
	members map[string]*member // by name on the brokers
}

// New are the groups of a process that consumes nothing yet.
func New(c *cluster.Cluster, ts *compacted.Tables, r *registry.Registry, w *delay.Delays,
	p *publisher.Publisher) *Groups {
	return &Groups{cluster: c, tables: ts, registry: r, delays: w, publisher: p, members: map[string]*member{}}
}

// Changed wakes members: a pause may be set or lifted. Whoever consumes also fires what others begin to delay.
func (d *Groups) Changed() {
	members := d.all()
	if len(members) > 0 && d.registry.Meta.Get(cluster.DelaysKey) != nil && !d.delays.Started() {
		d.cluster.Task(func() { // it is tried again with the next change
			ctx, cancel := context.WithTimeout(context.Background(), d.cluster.Settings.Session)
			defer cancel()
			_, _ = d.delays.Start(ctx)
		})
	}
	for _, m := range members {
		paused := d.registry.Paused(m.topic.Name, m.group)
		m.mu.Lock()
		m.stopped = paused
		m.wakeAll()
		m.mu.Unlock()
	}
}

// all are the members of this process.
func (d *Groups) all() []*member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.members))
}

// LeaveAll leaves every group.
func (d *Groups) LeaveAll(ctx context.Context) {
	for _, m := range d.all() {
		m.part(ctx, nil)
	}
}

// forget is told that a member leaves: the next subscription makes another.
func (d *Groups) forget(m *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.members, func(_ string, known *member) bool { return known == m })
}

// Consumed are the topics that this process consumes.
func (d *Groups) Consumed() map[string]*registry.TopicState {
	topics := map[string]*registry.TopicState{}
	for _, m := range d.all() {
		topics[m.topic.Name] = m.topic
	}
	return topics
}

// keysOf is what is known of the retry log of a group that others own.
func (d *Groups) keysOf(topic, group string) *liveKeys {
	keys, _ := d.keys.LoadOrStore(d.cluster.RetryTopic(topic, group), newLiveKeys())
	return keys.(*liveKeys)
}

// Forget is told that a group is deleted.
func (d *Groups) Forget(topic, group string) { d.keys.Delete(d.cluster.RetryTopic(topic, group)) }

// memberIn is this process in a group; nil if it is no member.
func (d *Groups) memberIn(topic, group string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[d.cluster.GroupID(topic, group)]
}
