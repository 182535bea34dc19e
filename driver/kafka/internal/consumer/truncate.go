package consumer

import (
	"context"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// checkLog is CheckLogs of cluster for a partition that is loaded.
func (p *partition) checkLog(ctx context.Context) error {
	cuts, err := p.m.d.cluster.CheckLogs(ctx, p.m.mainName, map[int32]*offsets.Set{p.id: p.done})
	if at, ok := cuts[p.id]; ok {
		p.cut, p.passed = at, min(p.passed, p.done.Base)
	}
	return err
}

// goBack lets the client fetch from where partitions read on: they were cut, or were loaded before their assignment was
// broken off, and have committed more since.
func (m *member) goBack(offsets map[int32]kgo.Offset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range offsets {
		if p := m.parts[id]; p != nil && (p.cut >= 0 || p.done.Next < at.EpochOffset().Offset) {
			offsets[id] = kgo.NewOffset().At(p.done.Next).WithEpoch(p.done.Seen)
		}
	}
}

// keepCutOff gives what is in the retry log of a message that the main topic has lost a key of its own: its offset
// belongs to another message now.
func (p *partition) keepCutOff() {
	if p.cut < 0 {
		return
	}
	for key, r := range maps.Clone(p.found) {
		s, ok := record.StateOf(r)
		if !ok || s.Offset < p.cut {
			continue
		}
		delete(p.found, key)
		p.doubtful[key] = true // it ends under the old one
		if s.Done {
			continue
		}
		c := *r
		c.Key = fmt.Appendf(nil, "t/%d/%d", p.done.Seen, s.Offset)
		s.Offset = -1
		c.Headers = []kgo.RecordHeader{s.Header()}
		p.found[string(c.Key)], p.doubtful[string(c.Key)] = &c, true
	}
}

// retake takes partitions over anew whose logs were cut: leases on them are lost. Nobody takes them away meanwhile.
func (m *member) retake(ctx context.Context) {
	m.mu.Lock()
	ids := m.cut
	m.cut = nil
	m.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	m.drop(ids)
	for m.ownAll(ctx, ids) != nil {
		if cluster.Pause(ctx, cluster.FetchWait) != nil {
			return
		}
	}
	again := map[int32]kgo.EpochOffset{}
	m.mu.Lock()
	for _, id := range ids {
		if p := m.parts[id]; p != nil {
			again[id] = kgo.EpochOffset{Epoch: p.done.Seen, Offset: p.done.Next}
		}
	}
	m.mu.Unlock()
	m.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.mainName: again})
}
