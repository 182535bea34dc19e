package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Vouched reports whether a member of this process surely owns its partitions.
func (d *Driver) Vouched(topic, group string) bool {
	return d.groups.Glimpse(topic, group).Vouched
}

// Disown makes a member of this process doubt whether it is one, until the coordinator has said so.
func (d *Driver) Disown(topic, group string) { d.groups.Probe(topic, group).Disown() }

// Acquainted reports whether this process knows the retry log of a group well enough to follow it at once.
func (d *Driver) Acquainted(topic, group string) bool {
	leader, _, err := d.tables.Reader.PartitionLeader(d.cluster.RetryTopic(topic, group), 0)
	return err == nil && leader >= 0
}

// Ready is how many messages a member of this process could deliver.
func (d *Driver) Ready(topic, group string) int { return d.groups.Glimpse(topic, group).Ready }

// CommitDirty does what is done every 200 ms.
func (d *Driver) CommitDirty(ctx context.Context, topic, group string) error {
	return d.groups.Probe(topic, group).CommitDirty(ctx)
}

// Unparked is up to which offset a member of this process has settled or parked everything, over all partitions.
func (d *Driver) Unparked(topic, group string) (sum int64) {
	return d.groups.Glimpse(topic, group).Done
}

// Spilled counts the messages of a member of this process whose content is only in the retry log.
func (d *Driver) Spilled(topic, group string) (n int) {
	return d.groups.Glimpse(topic, group).Spilled
}

// TrimSettled does what is done every 30 s.
func (d *Driver) TrimSettled(ctx context.Context) error { return housekeeper{d}.trimAll(ctx) }

// Revive does what is done every 12 h.
func (d *Driver) Revive(ctx context.Context) error { return housekeeper{d}.keepAlive(ctx) }

// Queued is how many bytes the fullest partition of the tiers has in memory in this process.
func (d *Driver) Queued() int { return d.delays.QueuedBytes() }

// LookAgain lets a member of this process see partitions that were added.
func (d *Driver) LookAgain(topic, group string) { d.groups.Probe(topic, group).LookAgain() }

// Rejoin lets a member of this process join its group again.
func (d *Driver) Rejoin(topic, group string) { d.groups.Rejoin(topic, group) }

// Holds reports whether a member of this process holds deliveries, as far as it knows.
func (d *Driver) Holds(topic, group string) bool { return d.groups.Glimpse(topic, group).Holds }

// CommittedEpoch is the leader epoch that is committed for the first partition of a group.
func (d *Driver) CommittedEpoch(ctx context.Context, topic, group string) int32 {
	at, err := d.cluster.CommittedOf(ctx, d.cluster.GroupID(topic, group), d.cluster.MainTopic(topic))
	if err != nil {
		return -1
	}
	return at[0].LeaderEpoch
}

// CommitTiers does what is done every 200 ms.
func (d *Driver) CommitTiers(ctx context.Context) { d.delays.CommitNow(ctx) }

// Overlay lets a member of this process fetch a record of a later leader at an offset of the first partition.
func (d *Driver) Overlay(ctx context.Context, topic, group string, offset int64) {
	d.groups.Overlay(ctx, topic, group, offset)
}

// WithClaims are options with claims on rows that last for so long.
func WithClaims(o Options, lasts time.Duration) Options {
	o.rowLocks = lasts
	return o
}

// Owned is how many partitions a member of this process owns, of the default group.
func (d *Driver) Owned(topic string) int {
	return d.groups.Glimpse(topic, driver.DefaultGroup).Owned
}

// PassOn does what is done every 200 ms while a process drains.
func (d *Driver) PassOn(topic string) { d.groups.Probe(topic, driver.DefaultGroup).PassOn() }

// StoreRaw puts bytes that cannot be decoded into a topic.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.publisher.EnsurePublished(ctx, topic)
	if err != nil {
		return err
	}
	return d.cluster.Produce(ctx, &kgo.Record{Topic: d.cluster.MainTopic(topic), Partition: d.registry.PartitionFor(t, ""),
		Value:   append([]byte{}, raw...),
		Headers: []kgo.RecordHeader{{Key: "ferry", Value: []byte("0")}}})
}

// WithSnapshots are options with a snapshot of the named values after about so many bytes of commands.
func WithSnapshots(o Options, every int) Options {
	o.snapshotEvery = every
	return o
}

// WithIdle are options with which named values that nobody uses are not followed for longer than that.
func WithIdle(o Options, idle time.Duration) Options {
	o.kvIdle = idle
	return o
}

// Followed is how many partitions of named values this process follows.
func (d *Driver) Followed() int { return d.kv.Followed() }

// StoreRawCommand puts bytes into the topic of named values.
func (d *Driver) StoreRawCommand(ctx context.Context, raw []byte) error {
	if _, err := d.makeKV(ctx); err != nil {
		return err
	}
	return d.cluster.Produce(ctx, &kgo.Record{Topic: d.cluster.KVTopic(), Value: raw})
}
