package kafka

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Topics lists what the meta topic knows.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	if d.isClosed() {
		return nil, refusal.Closed()
	}
	if err := d.meta.sync(ctx); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = d.topicNames()
	}
	var infos []driver.TopicInfo
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		var row topicRow
		if d.metaRow(topicKey(name), &row) {
			infos = append(infos, driver.TopicInfo{Topic: name, Config: row.Config, Paused: row.Paused, Groups: d.groupsOf(name)})
		}
	}
	return infos, nil
}

func (d *Driver) topicNames() []string {
	names := map[string]bool{}
	for _, r := range d.meta.all() {
		if name, ok := strings.CutPrefix(string(r.Key), "t/"); ok {
			names[name] = true
		}
	}
	return sortedKeys(names)
}

// Stats estimates from offsets, the side logs and what this process has seen.
func (d *Driver) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return driver.TopicStats{}, err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return driver.TopicStats{}, err
	}
	st := driver.TopicStats{Topic: topic, Paused: d.rowOf(t).Paused}
	ends, err := d.position(ctx, t, endPosition)
	if err != nil {
		return st, err
	}
	for _, end := range ends {
		st.Fanned += uint64(end)
	}
	if st.Delayed, st.Held, err = d.countDelayed(ctx, topic); err != nil {
		return st, err
	}
	st.Published = st.Fanned + uint64(st.Delayed+st.Held)
	bad, err := d.invalidRows(ctx, t)
	if err != nil {
		return st, err
	}
	st.Invalid = bad.count(invalidList)
	groups := d.groupsOf(topic)
	consumers, err := d.countConsumers(ctx, topic, groups)
	if err != nil {
		return st, err
	}
	for _, g := range groups {
		gs, err := d.groupStats(ctx, t, g, ends)
		if err != nil {
			return st, err
		}
		gs.Consumers = consumers[g]
		st.Groups = append(st.Groups, gs)
		st.Messages = max(st.Messages, gs.Ready+gs.Inflight+gs.Waiting)
	}
	st.Messages += st.Delayed + st.Held
	if d.rowOf(t).Config.MaxBytes > 0 && st.Messages > 0 {
		size, err := d.averageSize(ctx, t, ends)
		if err != nil {
			return st, err
		}
		st.Bytes = size * st.Messages
	}
	return st, nil
}

// countConsumers asks once for the members of groups: each is a process, in which all subscriptions to a group are one member. Of this process the subscriptions are counted.
func (d *Driver) countConsumers(ctx context.Context, topic string, groups []string) (map[string]int, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = d.groupID(topic, g)
	}
	described, err := d.admin.DescribeGroups(ctx, ids...)
	if err != nil {
		return nil, d.unreached("asking for the members of groups", err)
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
func (d *Driver) subscriptions(groupID string) int {
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

func (d *Driver) groupStats(ctx context.Context, t *topicState, group string, ends map[int32]int64) (driver.GroupStats, error) {
	var row groupRow
	d.metaRow(groupKey(t.name, group), &row)
	gs := driver.GroupStats{Group: group, Order: row.Order, Paused: row.Paused}
	dead, err := d.deadLetters(ctx, t)
	if err != nil {
		return gs, err
	}
	gs.Dead = dead.count(group)
	if err := d.countGroup(ctx, t, &gs, ends); err != nil {
		return gs, err
	}
	gs.Received = gs.Acked + gs.Dropped + gs.Expired + gs.Cancelled + uint64(gs.Ready+gs.Inflight+gs.Waiting+gs.Dead)
	return gs, nil
}

// countGroup adds up partitions: ours as they are, those of others as they said with their last commit.
func (d *Driver) countGroup(ctx context.Context, t *topicState, gs *driver.GroupStats, ends map[int32]int64) error {
	d.mu.Lock()
	m := d.members[d.groupID(t.name, gs.Group)]
	d.mu.Unlock()
	others, err := d.partitionsNow(ctx, t)
	if err != nil {
		return err
	}
	if m != nil {
		if err := m.catchUp(ctx); err != nil {
			return err
		}
		m.mu.Lock()
		for id, p := range m.parts {
			p.count(gs, ends[id])
		}
		others = slices.DeleteFunc(others, func(id int32) bool { return m.parts[id] != nil })
		m.mu.Unlock()
	}
	if len(others) == 0 {
		return nil
	}
	at, err := d.committed(ctx, t, gs.Group)
	if err != nil {
		return err
	}
	sides, err := d.admin.ListEndOffsets(ctx, d.sideTopic(t.name, gs.Group))
	if err != nil {
		return d.unreached("reading offsets", err)
	}
	said := map[int32]tally{}
	for _, id := range others {
		said[id] = readTally(at[id].Metadata, at[id].At)
		if end, _ := sides.Lookup(d.sideTopic(t.name, gs.Group), id); m == nil && end.Offset > said[id].Side {
			return d.countVisit(ctx, t, gs, ends, others) // something came in that no owner has seen
		}
	}
	for id, tally := range said {
		tally.addTo(gs, ends[id])
	}
	return nil
}

// countVisit counts partitions without an owner by reading them.
func (d *Driver) countVisit(ctx context.Context, t *topicState, gs *driver.GroupStats, ends map[int32]int64, ids []int32) error {
	var row groupRow
	d.metaRow(groupKey(t.name, gs.Group), &row)
	busy, err := d.consumers(ctx, t.name, gs.Group) // then a visit changes nothing
	if err != nil {
		return err
	}
	v, err := d.visit(ctx, t, gs.Group, row, ids, busy)
	if err != nil {
		return err
	}
	defer v.cancel()
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, p := range v.parts {
		p.count(gs, ends[id])
	}
	return nil
}

// count adds an owned partition to the counts of its group.
func (p *partition) count(gs *driver.GroupStats, end int64) {
	p.current().addTo(gs, end)
	for it := range p.items.all() {
		if it.state == ready {
			gs.Oldest = max(gs.Oldest, time.Since(it.since), p.m.d.now().Sub(it.msg.PublishedAt))
		}
	}
}
