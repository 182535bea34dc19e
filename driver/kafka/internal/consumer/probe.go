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

// Glimpse is what such a member has in memory at a moment.
type Glimpse struct {
	Vouched bool  // it surely owns its partitions
	Holds   bool  // it holds deliveries, as far as it knows
	Owned   int   // partitions
	Ready   int   // messages that it could deliver
	Spilled int   // messages whose content is only in the retry log
	Done    int64 // up to which offset everything is settled, or in the retry log, over all partitions
}

// Look takes a glimpse.
func (x Probe) Look() Glimpse {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	g := Glimpse{Vouched: x.m.vouched(time.Now()), Owned: len(x.m.parts), Ready: x.m.counts[ready]}
	for _, p := range x.m.parts {
		g.Done += p.done.Base
		g.Holds = g.Holds || p.leased > 0
		for it := range p.items.all() {
			if it.spilled {
				g.Spilled++
			}
		}
	}
	return g
}

// Disown makes it doubt whether it is a member, until the coordinator has said so.
func (x Probe) Disown() { x.m.disown() }

// CommitDirty does what is done every 200 ms.
func (x Probe) CommitDirty(ctx context.Context) error { return x.m.commitDirty(ctx) }

// LookAgain lets it see partitions that were added.
func (x Probe) LookAgain() { x.m.cl.ForceMetadataRefresh() }

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
