package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// CountConsumers asks once for the members of groups: each is a process, in which all subscriptions to a group are one
// member. Of this process the subscriptions are counted.
func (d *Groups) CountConsumers(ctx context.Context, topic string, groups []string) (map[string]int, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = d.cluster.GroupID(topic, g)
	}
	described, err := d.cluster.Admin.DescribeGroups(ctx, ids...)
	if err != nil {
		return nil, d.cluster.Unreached("asking for the members of groups", err)
	}
	consumers := map[string]int{}
	for i, g := range groups {
		members, here := len(described[ids[i]].Members), d.subscriptions(ids[i])
		if here > 0 {
			members = max(0, members-1) + here
		}
		consumers[g] = members
	}
	return consumers, nil
}

// subscriptions is how many this process has to a group.
func (d *Groups) subscriptions(groupID string) int {
	d.mu.Lock()
	m := d.members[groupID]
	d.mu.Unlock()
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.subs)
}

// CountGroup adds up partitions: ours as they are, those of others as they said with their last commit.
func (d *Groups) CountGroup(ctx context.Context, t *registry.TopicState, gs *driver.GroupStats,
	ends map[int32]int64) error {
	m := d.memberIn(t.Name, gs.Group)
	others, err := d.registry.PartitionsNow(ctx, t)
	if err != nil {
		return err
	}
	if m != nil {
		if err := m.catchUp(ctx); err != nil {
			return err
		}
		m.mu.Lock()
		for id, p := range m.parts {
			p.addTo(gs, ends[id])
		}
		others = slices.DeleteFunc(others, func(id int32) bool { return m.parts[id] != nil })
		m.mu.Unlock()
	}
	if len(others) == 0 {
		return nil
	}
	at, err := d.registry.Committed(ctx, t, gs.Group)
	if err != nil {
		return err
	}
	logs, err := d.cluster.Offsets(ctx, d.cluster.Admin.ListEndOffsets, d.cluster.RetryTopic(t.Name, gs.Group))
	if err != nil {
		return err
	}
	said := map[int32]offsets.Tally{}
	for _, id := range others {
		said[id] = offsets.ReadTally(at[id].Metadata, at[id].At)
		if m == nil && logs[id] > said[id].Logged {
			return d.countVisit(ctx, t, gs, ends, others) // something came in that no owner has seen
		}
	}
	for id, tally := range said {
		tally.AddTo(gs, ends[id])
	}
	return nil
}

// countVisit counts partitions without an owner by reading them.
func (d *Groups) countVisit(ctx context.Context, t *registry.TopicState, gs *driver.GroupStats, ends map[int32]int64,
	ids []int32) error {
	busy, err := d.Consumers(ctx, t.Name, gs.Group) // then a visit changes nothing
	if err != nil {
		return err
	}
	v, err := d.visit(ctx, t, gs.Group, ids, busy)
	if err != nil {
		return err
	}
	defer v.cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, p := range v.parts {
		p.addTo(gs, ends[id])
	}
	return nil
}

// addTo adds an owned partition to the counts of its group.
func (p *partition) addTo(gs *driver.GroupStats, end int64) {
	p.current().AddTo(gs, end)
	for it := range p.items.all() {
		if it.state == ready {
			gs.Oldest = max(gs.Oldest, time.Since(it.since), p.m.d.cluster.Now().Sub(it.Msg.PublishedAt))
		}
	}
}

// Tallies are what is counted in each partition of a group.
func (d *Groups) Tallies(ctx context.Context, t *registry.TopicState, group string) (map[int32]offsets.Tally, error) {
	at, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	all := map[int32]offsets.Tally{}
	for id, o := range at {
		all[id] = offsets.ReadTally(o.Metadata, o.At)
	}
	if m := d.memberIn(t.Name, group); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for id, p := range m.parts {
			all[id] = p.current()
		}
	}
	return all, nil
}

// Owners names who reads each partition of a group: in this process by its instances, in others as Kafka knows them.
func (d *Groups) Owners(ctx context.Context, t *registry.TopicState, group string) (map[int32]string, error) {
	id := d.cluster.GroupID(t.Name, group)
	found, err := d.cluster.Admin.DescribeGroups(ctx, id)
	if err != nil {
		return nil, d.cluster.Unreached("asking for the members of a group", err)
	}
	owners := map[int32]string{}
	for _, x := range found[id].Members {
		assigned, ok := x.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, at := range assigned.Topics {
			for _, p := range at.Partitions {
				owners[p] = x.MemberID
			}
		}
	}
	if m := d.memberIn(t.Name, group); m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		for p := range m.parts {
			owners[p] = m.instances()
		}
	}
	return owners, nil
}

// instances are the names of those who consume in this process.
func (m *member) instances() string {
	var names []string
	for s := range m.subs {
		names = append(names, s.o.Instance)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// Consumers says whether a group has members, here or elsewhere.
func (d *Groups) Consumers(ctx context.Context, topic, group string) (bool, error) {
	if d.memberIn(topic, group) != nil {
		return true, nil
	}
	consumers, err := d.CountConsumers(ctx, topic, []string{group})
	return consumers[group] > 0, err
}

// RefuseConsumers refuses what needs a group without consumers.
func (d *Groups) RefuseConsumers(ctx context.Context, topic, group string) error {
	busy, err := d.Consumers(ctx, topic, group)
	if err == nil && busy {
		err = driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q has consumers", group, topic),
			"stop them first", nil)
	}
	return err
}
