package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Probe is this process in a group that it consumes, for tests of the driver: what it has in memory, and what it
// otherwise does at intervals.
func (d *Groups) Probe(topic, group string) *member { return d.memberIn(topic, group) }

// Glimpse is what a member has in memory at a moment.
type Glimpse struct {
	Vouched bool  // it surely owns its partitions
	Holds   bool  // it holds deliveries, as far as it knows
	Owned   int   // partitions
	Ready   int   // messages that it could deliver
	Spilled int   // messages whose content is only in the retry log
	Done    int64 // up to which offset everything is settled, or in the retry log, over all partitions
}

// Glimpse looks at such a member.
func (d *Groups) Glimpse(topic, group string) Glimpse {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	defer m.mu.Unlock()
	g := Glimpse{Vouched: m.vouched(time.Now()), Owned: len(m.parts), Ready: m.counts[ready]}
	for _, p := range m.parts {
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

// LookAgain lets it see partitions that were added.
func (m *member) LookAgain() { m.cl.ForceMetadataRefresh() }

// Rejoin lets it join its group again.
func (d *Groups) Rejoin(topic, group string) { d.memberIn(topic, group).cl.ForceRebalance() }

// Overlay lets it fetch a record of a later leader at an offset of the first partition.
func (d *Groups) Overlay(ctx context.Context, topic, group string, offset int64) {
	m := d.memberIn(topic, group)
	m.mu.Lock()
	epoch := m.parts[0].done.Seen
	m.mu.Unlock()
	r := &kgo.Record{Topic: m.mainName, Offset: offset, LeaderEpoch: epoch + 1, Value: []byte{}}
	m.feedAll(kgo.Fetches{{Topics: []kgo.FetchTopic{{Topic: m.mainName,
		Partitions: []kgo.FetchPartition{{Records: []*kgo.Record{r}}}}}}})
	m.retake(ctx)
}
