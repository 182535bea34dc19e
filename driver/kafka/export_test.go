package kafka

import (
	"context"
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Vouched reports whether a member of this process surely owns its partitions.
func (d *Driver) Vouched(topic, group string) bool {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vouched(time.Now())
}

// Disown makes a member of this process doubt whether it is one, until the coordinator has said so.
func (d *Driver) Disown(topic, group string) { d.memberIn(topic, group).disown() }

// Acquainted reports whether this process knows the side log of a group well enough to follow it at once.
func (d *Driver) Acquainted(topic, group string) bool {
	leader, _, err := d.reader.PartitionLeader(d.sideTopic(topic, group), 0)
	return err == nil && leader >= 0
}

// Ready is how many messages a member of this process could deliver.
func (d *Driver) Ready(topic, group string) int {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[ready]
}

// CommitDirty does what is done every 200 ms.
func (d *Driver) CommitDirty(ctx context.Context, topic, group string) error {
	return d.memberIn(topic, group).commitDirty(ctx)
}

// Unparked is up to which offset a member of this process has settled or parked everything, over all partitions.
func (d *Driver) Unparked(topic, group string) (sum int64) {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		sum += p.done.base
	}
	return sum
}

// Spilled counts the messages of a member of this process whose content is only in the side log.
func (d *Driver) Spilled(topic, group string) (n int) {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		for it := range p.items.all() {
			if it.spilled {
				n++
			}
		}
	}
	return n
}

// TrimSettled does what is done every 30 s.
func (d *Driver) TrimSettled(ctx context.Context) error { return d.trimAll(ctx) }

// Revive does what is done every 12 h.
func (d *Driver) Revive(ctx context.Context) error { return d.keepAlive(ctx) }

// Claims are contests about rows that are at offset 7, if they are called "row".
type Claims struct{ c *contests }

// NewClaims returns claims on nothing.
func NewClaims() Claims { return Claims{newContests(claimFor)} }

func (x Claims) note(r *kgo.Record) {
	x.c.note(r, func(key string) int64 {
		if key == "row" {
			return 7
		}
		return 8
	})
}

// Claim reports whether a claim was first.
func (x Claims) Claim(by, key string, at time.Time) bool {
	a := x.c.enter(by)
	value, _ := json.Marshal(rowClaim{by, 7})
	x.note(&kgo.Record{Key: []byte(claimPrefix + key), Value: value, Timestamp: at})
	return a.won
}

// Release reports whether a claim held until now.
func (x Claims) Release(by, key string) bool {
	x.note(&kgo.Record{Key: []byte(claimPrefix + key), Headers: []kgo.RecordHeader{{Key: byHeader, Value: []byte(by)}}})
	return x.c.mine[by].kept
}

// Queued is how many bytes the fullest partition of the tiers has in memory in this process.
func (d *Driver) Queued() (most int) {
	d.mu.Lock()
	w := d.delays
	d.mu.Unlock()
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.parts {
		most = max(most, p.bytes)
	}
	return most
}

// LookAgain lets a member of this process see partitions that were added.
func (d *Driver) LookAgain(topic, group string) { d.memberIn(topic, group).cl.ForceMetadataRefresh() }

// Holds reports whether a member of this process holds deliveries, as far as it knows.
func (d *Driver) Holds(topic, group string) bool {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		if p.held > 0 {
			return true
		}
	}
	return false
}

// CommittedEpoch is the leader epoch that is committed for the first partition of a group.
func (d *Driver) CommittedEpoch(ctx context.Context, topic, group string) int32 {
	at, err := d.committedOf(ctx, d.groupID(topic, group), d.mainTopic(topic))
	if err != nil {
		return -1
	}
	return at[0].LeaderEpoch
}

// CommitTiers does what is done every 200 ms.
func (d *Driver) CommitTiers(ctx context.Context) {
	d.mu.Lock()
	w := d.delays
	d.mu.Unlock()
	_ = w.commit(ctx)
}

// Overlay lets a member of this process fetch a record of a later leader at an offset of the first partition.
func (d *Driver) Overlay(ctx context.Context, topic, group string, offset int64) {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	epoch := m.parts[0].done.seen
	m.mu.Unlock()
	r := &kgo.Record{Topic: m.mainName, Offset: offset, LeaderEpoch: epoch + 1, Value: []byte{}}
	m.feedAll(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: m.mainName, Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{r}}}}}}})
	m.retake(ctx)
}

// WithClaims are options with claims on rows that last for so long.
func WithClaims(o Options, lasts time.Duration) Options {
	o.claims = lasts
	return o
}

// Owned is how many partitions a member of this process owns, of the default group.
func (d *Driver) Owned(topic string) int {
	m := d.memberIn(topic, driver.DefaultGroup)
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.parts)
}

// PassOn does what is done every 200 ms while a process drains.
func (d *Driver) PassOn(topic string) { d.memberIn(topic, driver.DefaultGroup).passOn() }

// StoreRaw puts bytes that cannot be decoded into a topic.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.ensurePublished(ctx, topic)
	if err != nil {
		return err
	}
	return d.produce(ctx, &kgo.Record{Topic: d.mainTopic(topic), Partition: d.place(t, ""), Value: append([]byte{}, raw...),
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
	return d.produce(ctx, &kgo.Record{Topic: d.kvTopic(), Value: raw})
}
