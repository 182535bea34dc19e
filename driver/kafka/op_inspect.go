package kafka

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Topics lists what the meta topic knows.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	if err := d.registry.Meta.Sync(ctx); err != nil { // also when the driver is closed
		return nil, err
	}
	if len(names) == 0 {
		names = d.registry.TopicNames()
	}
	var infos []driver.TopicInfo
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		var row registry.TopicRow
		if d.registry.Row(registry.TopicKey(name), &row) {
			infos = append(infos, driver.TopicInfo{Topic: name, Config: row.Config, Paused: row.Paused,
				Groups: d.registry.GroupsOf(name)})
		}
	}
	return infos, nil
}

// Stats estimates from offsets, the retry logs and what this process has seen.
func (d *Driver) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	t, err := d.topic(ctx, driver.CheckName("topic", topic), topic)
	if err != nil {
		return driver.TopicStats{}, err
	}
	st := driver.TopicStats{Topic: topic, Paused: d.registry.RowOf(t).Paused}
	ends, err := d.cluster.CommittedEnds(ctx, t.Main)
	if err != nil {
		return st, err
	}
	for _, end := range ends {
		st.Fanned += uint64(end)
	}
	if st.Delayed, st.Held, err = d.delays.Count(ctx, topic); err != nil {
		return st, err
	}
	st.Published = st.Fanned + uint64(st.Delayed+st.Held)
	bad, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return st, err
	}
	st.Invalid = bad.Count(registry.InvalidList)
	dead, err := d.registry.DeadLetters(ctx, t)
	if err != nil {
		return st, err
	}
	groups := d.registry.GroupsOf(topic)
	consumers, err := d.groups.CountConsumers(ctx, topic, groups)
	if err != nil {
		return st, err
	}
	for _, g := range groups {
		row, _ := d.registry.Group(topic, g) // listed a moment ago
		gs := driver.GroupStats{Group: g, Order: row.Order, Paused: row.Paused, Dead: dead.Count(g),
			Consumers: consumers[g]}
		if err := d.groups.CountGroup(ctx, t, &gs, ends); err != nil {
			return st, err
		}
		gs.Received = gs.Acked + gs.Dropped + gs.Expired + gs.Cancelled + uint64(gs.Ready+gs.Inflight+gs.Waiting+gs.Dead)
		st.Groups = append(st.Groups, gs)
		st.Messages = max(st.Messages, gs.Ready+gs.Inflight+gs.Waiting)
	}
	st.Messages += st.Delayed + st.Held
	if d.registry.RowOf(t).Config.MaxBytes > 0 && st.Messages > 0 {
		size, err := d.publisher.AverageSize(ctx, t, ends)
		if err != nil {
			return st, err
		}
		st.Bytes = size * st.Messages
	}
	return st, nil
}

// Usage is not known: a Kafka client is not told what its brokers use.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	if d.cluster.IsClosed() {
		return driver.Usage{}, refusal.Closed()
	}
	return driver.Usage{}, ctx.Err()
}
