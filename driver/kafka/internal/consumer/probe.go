package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Probe is a member of this process as tests of the driver see it: what it has in memory, and what it otherwise does at
// intervals.
type Probe struct{ m *member }

// Probe looks at this process in a group that it consumes.
func (d *Groups) Probe(topic, group string) Probe { return Probe{d.memberIn(topic, group)} }

// Vouched reports whether it surely owns its partitions.
func (x Probe) Vouched() bool {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return x.m.vouched(time.Now())
}

// Disown makes it doubt whether it is a member, until the coordinator has said so.
func (x Probe) Disown() { x.m.disown() }

// Ready is how many messages it could deliver.
func (x Probe) Ready() int {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return x.m.counts[ready]
}

// CommitDirty does what is done every 200 ms.
func (x Probe) CommitDirty(ctx context.Context) error { return x.m.commitDirty(ctx) }

// Done is up to which offset everything is settled, or in the retry log, over all partitions.
func (x Probe) Done() (sum int64) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	for _, p := range x.m.parts {
		sum += p.done.Base
	}
	return sum
}

// Spilled counts the messages whose content is only in the retry log.
func (x Probe) Spilled() (n int) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	for _, p := range x.m.parts {
		for it := range p.items.all() {
			if it.spilled {
				n++
			}
		}
	}
	return n
}

// LookAgain lets it see partitions that were added.
func (x Probe) LookAgain() { x.m.cl.ForceMetadataRefresh() }

// Holds reports whether it holds deliveries, as far as it knows.
func (x Probe) Holds() bool {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	for _, p := range x.m.parts {
		if p.leased > 0 {
			return true
		}
	}
	return false
}

// Owned is how many partitions it owns.
func (x Probe) Owned() int {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return len(x.m.parts)
}

// PassOn does what is done every 200 ms while a process drains.
func (x Probe) PassOn() { x.m.passOn() }

// Overlay lets it fetch a record of a later leader at an offset of the first partition.
func (x Probe) Overlay(ctx context.Context, offset int64) {
	m := x.m
	m.mu.Lock()
	epoch := m.parts[0].done.Seen
	m.mu.Unlock()
	r := &kgo.Record{Topic: m.mainName, Offset: offset, LeaderEpoch: epoch + 1, Value: []byte{}}
	m.feedAll(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: m.mainName,
		Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{r}}}}}}})
	m.retake(ctx)
}
