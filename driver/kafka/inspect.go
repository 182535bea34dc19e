package kafka

import (
	"context"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Topics lists what the meta topic knows.
func (d *Driver) Topics(ctx context.Context) ([]driver.TopicInfo, error) {
	if d.isClosed() {
		return nil, errClosed()
	}
	if err := d.meta.sync(ctx); err != nil {
		return nil, err
	}
	var infos []driver.TopicInfo
	for _, name := range d.topicNames() {
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
	t, err := d.existing(ctx, topic)
	if err != nil {
		return driver.TopicStats{}, err
	}
	st := driver.TopicStats{Topic: topic, Paused: d.rowOf(t).Paused}
	ends, err := d.position(ctx, t, driver.Position{})
	if err != nil {
		return st, err
	}
	for _, end := range ends {
		st.Fanned += uint64(end)
	}
	rows, err := d.delayedOf(ctx, topic)
	if err != nil {
		return st, err
	}
	for _, x := range rows {
		if x.s.Hold {
			st.Held++
		} else {
			st.Delayed++
		}
	}
	st.Published = st.Fanned + uint64(st.Delayed+st.Held)
	bad, err := d.invalidTable(ctx, t)
	if err != nil {
		return st, err
	}
	st.Invalid = int64(len(bad.all()))
	for _, g := range d.groupsOf(topic) {
		gs, err := d.groupStats(ctx, t, g, ends)
		if err != nil {
			return st, err
		}
		st.Groups = append(st.Groups, gs)
		st.Messages = max(st.Messages, gs.Ready+gs.Inflight+gs.Waiting)
	}
	st.Messages += st.Delayed + st.Held
	return st, nil
}

func (d *Driver) groupStats(ctx context.Context, t *topicState, group string, ends map[int32]int64) (driver.GroupStats, error) {
	var row groupRow
	d.metaRow(groupKey(t.name, group), &row)
	gs := driver.GroupStats{Group: group, Order: row.Order, Paused: row.Paused}
	dead, err := d.deadTable(ctx, t)
	if err != nil {
		return gs, err
	}
	for _, r := range dead.all() {
		if strings.HasPrefix(string(r.Key), deadKey(group, "")) {
			gs.Dead++
		}
	}
	v, err := d.look(ctx, t, group)
	if err != nil {
		return gs, err
	}
	defer v.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	gs.Consumers = len(v.subs)
	gs.Ready, gs.Inflight, gs.Waiting = int64(v.counts[ready]), int64(v.counts[inflight]), int64(v.counts[waiting])
	for id, p := range v.parts {
		gs.Ready += max(0, ends[id]-p.done.next) // not fetched yet
		for _, it := range p.items {
			if it.state == ready {
				gs.Oldest = max(gs.Oldest, time.Since(it.since), time.Since(it.msg.PublishedAt))
			}
		}
	}
	gs.Acked, gs.Dropped, gs.Expired, gs.Cancelled, gs.Redelivered = v.acked, v.dropped, v.expired, v.cancelled, v.redelivered
	gs.Received = gs.Acked + gs.Dropped + gs.Expired + gs.Cancelled + uint64(gs.Ready+gs.Inflight+gs.Waiting+gs.Dead)
	return gs, nil
}

// delayedOf returns what waits or is held for a topic, oldest first.
func (d *Driver) delayedOf(ctx context.Context, topic string) ([]delayed, error) {
	if err := d.startDelays(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	w := d.delays
	d.mu.Unlock()
	if w == nil {
		return nil, errClosed()
	}
	if err := w.rows.sync(ctx); err != nil {
		return nil, err
	}
	var out []delayed
	for _, r := range w.rows.all() {
		if x, ok := readDelayed(r); ok && x.m.Topic == topic {
			if e := x.expires(); e.IsZero() || e.After(time.Now()) {
				out = append(out, x)
			}
		}
	}
	return out, nil
}
