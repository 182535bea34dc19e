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
		consumers[g] = len(described[ids[i]].Members)
		if m := d.memberIn(topic, g); m != nil {
			m.mu.Lock()
			if here := len(m.subs); here > 0 {
				consumers[g] = max(0, consumers[g]-1) + here
			}
			m.mu.Unlock()
		}
	}
	return consumers, nil
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
		m.catchUp(ctx, ends)
		others = m.without(others)
		(&views{All: []*member{m}}).addTo(gs, ends)
	}
	if len(others) == 0 {
		return nil
	}
	at, err := d.registry.Committed(ctx, t, gs.Group)
	if err != nil {
		return err
	}
	logs, err := d.cluster.Ends(ctx, d.cluster.RetryTopic(t.Name, gs.Group))
	if err != nil {
		return err
	}
	said, unseen := map[int32]offsets.Tally{}, false
	for _, id := range others {
		said[id] = offsets.ReadTally(at[id].Metadata, at[id].At)
		unseen = unseen || m == nil && logs[id] > said[id].Logged
	}
	if unseen { // something came in that no owner knows
		busy, err := d.Consumers(ctx, t.Name, gs.Group) // then a visit changes nothing
		if err != nil {
			return err
		}
		v, err := d.visit(ctx, t, gs.Group, others, busy, ends)
		if err != nil {
			return err
		}
		(&views{All: []*member{v}}).addTo(gs, ends)
		return nil
	}
	for id, tally := range said {
		tally.AddTo(gs, ends[id])
	}
	return nil
}

// addTo adds partitions to the counts of their group.
func (vs *views) addTo(gs *driver.GroupStats, ends map[int32]int64) {
	for p := range vs.parts() {
		p.current().AddTo(gs, ends[p.id])
		for it := range p.items.all() {
			if it.state == ready {
				gs.Oldest = max(gs.Oldest, time.Since(it.since), p.m.d.cluster.Now().Sub(it.Msg.PublishedAt))
			}
		}
	}
}

// Shares tells of each partition of a group what is counted in it, and who reads it: in this process its instances, in
// others by the names that Kafka knows.
func (d *Groups) Shares(ctx context.Context, t *registry.TopicState, group string) (tallies map[int32]offsets.Tally,
	owners map[int32]string, err error) {
	at, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return nil, nil, err
	}
	id := d.cluster.GroupID(t.Name, group)
	found, err := d.cluster.Admin.DescribeGroups(ctx, id)
	if err != nil {
		return nil, nil, d.cluster.Unreached("asking for the members of a group", err)
	}
	tallies, owners = map[int32]offsets.Tally{}, map[int32]string{}
	for p, o := range at {
		tallies[p] = offsets.ReadTally(o.Metadata, o.At)
	}
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
		for id, p := range m.parts {
			tallies[id], owners[id] = p.current(), m.instances()
		}
	}
	return tallies, owners, nil
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
