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
	"github.com/ferrymq/ferry/driver/kafka/internal/retrylog"
)

// Groups are the groups that this process consumes, and what it may do to others.
type Groups struct {
	cluster   *cluster.Cluster
	tables    *compacted.Tables
	registry  *registry.Registry
	delays    *delay.Delays
	publisher *publisher.Publisher

	mu       sync.Mutex
	members  map[string]*member            // by name on the brokers
	starting bool                          // somebody else delayed something: joinDelays runs
	keys     map[string]*retrylog.LiveKeys // of retry logs that others own, by their topic
}

// New are the groups of a process that consumes nothing yet.
func New(c *cluster.Cluster, ts *compacted.Tables, r *registry.Registry, w *delay.Delays,
	p *publisher.Publisher) *Groups {
	return &Groups{cluster: c, tables: ts, registry: r, delays: w, publisher: p, members: map[string]*member{},
		keys: map[string]*retrylog.LiveKeys{}}
}

// Changed wakes members: a pause may be set or lifted. Whoever consumes also fires what others begin to delay.
func (d *Groups) Changed() {
	wanted := d.registry.Meta.Get(cluster.DelaysKey) != nil && d.delays.Started() == nil
	d.mu.Lock()
	join := wanted && len(d.members) > 0 && !d.starting
	d.starting = d.starting || join
	d.mu.Unlock()
	if join {
		d.cluster.Task(d.joinDelays)
	}
	for _, m := range d.all() {
		paused := d.registry.Paused(m.topic.Name, m.group)
		m.mu.Lock()
		m.stopped = paused
		m.wakeAll()
		m.mu.Unlock()
	}
}

// joinDelays starts to fire what another process delayed. It tries again with the next change of the registry.
func (d *Groups) joinDelays() {
	ctx, cancel := context.WithTimeout(context.Background(), d.cluster.Settings.Session)
	defer cancel()
	_, _ = d.delays.Start(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starting = false
}

// all are the members of this process.
func (d *Groups) all() []*member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.members))
}

// LeaveAll leaves every group.
func (d *Groups) LeaveAll(ctx context.Context) {
	members := d.all()
	d.mu.Lock()
	clear(d.members)
	d.mu.Unlock()
	for _, m := range members {
		m.leave(ctx)
	}
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
func (d *Groups) keysOf(topic, group string) *retrylog.LiveKeys {
	name := d.cluster.RetryTopic(topic, group)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys[name] == nil {
		d.keys[name] = retrylog.NewLiveKeys()
	}
	return d.keys[name]
}

// Forget is told that a group is deleted.
func (d *Groups) Forget(topic, group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, d.cluster.RetryTopic(topic, group))
}

// memberIn is this process in a group; nil if it is no member.
func (d *Groups) memberIn(topic, group string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[d.cluster.GroupID(topic, group)]
}
