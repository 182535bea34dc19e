package kafka

import (
	"context"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A log may lose its end, when all its brokers are killed at once for instance, and goes on with other records at the same offsets. Whoever remembers offsets
// would take these for done. So the leader epoch of the last record that was read is kept with what is done, and committed with it. A new owner asks where
// that epoch ended; one that stays sees a record of a later epoch at an offset that it has read. Both go back to where the log was cut.

// read notes the leader epoch of a record that is next.
func (s *doneSet) read(r *kgo.Record) { s.seen = r.LeaderEpoch }

// overlaid reports whether a record lies where another one was read before.
func (s *doneSet) overlaid(r *kgo.Record) bool {
	return r.Offset < s.next && s.seen >= 0 && r.LeaderEpoch > s.seen
}

// known is the offset behind the last one that the set says anything about.
func (s *doneSet) known() int64 {
	end := max(s.base, s.next)
	for off := s.first + int64(len(s.words))<<6 - 1; off >= end; off-- {
		if s.has(off) {
			return off + 1
		}
	}
	return end
}

// cut forgets what was known from an offset on. All before it that is not done is read again.
func (s *doneSet) cut(at int64) {
	done := newDoneSet(min(s.base, at))
	for off := s.base; off < at; off++ {
		if s.has(off) {
			done.set(off)
		}
	}
	s.base, s.next, s.first, s.words, s.count = done.base, done.base, done.first, done.words, done.count
	s.replay = min(s.replay, at)
	maps.DeleteFunc(s.before, func(p place, _ byte) bool { return !p.side && p.offset >= at })
}

// checkLogs compares what is known of partitions with their logs, and cuts off what these have lost. It returns where they were cut.
func (d *Driver) checkLogs(ctx context.Context, topic string, sets map[int32]*doneSet) (map[int32]int64, error) {
	var req kadm.OffsetForLeaderEpochRequest
	for id, s := range sets {
		if s.seen >= 0 {
			req.Add(topic, id, s.seen)
		}
	}
	if len(req) == 0 {
		return nil, nil
	}
	answers, err := d.admin.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		return nil, d.unreached("asking where leaders of "+topic+" began", err)
	}
	cuts := map[int32]int64{}
	for id, s := range sets {
		a, ok := answers[topic][id]
		switch {
		case !ok:
		case a.Err != nil:
			return nil, d.unreached("asking where leaders of "+topic+" began", a.Err)
		case a.EndOffset >= 0 && a.EndOffset < s.known():
			s.cut(a.EndOffset)
			s.seen, cuts[id] = a.LeaderEpoch, a.EndOffset
		}
	}
	return cuts, nil
}

// checkLog is checkLogs for a partition that is loaded.
func (p *partition) checkLog(ctx context.Context) error {
	cuts, err := p.m.d.checkLogs(ctx, p.m.mainName, map[int32]*doneSet{p.id: p.done})
	if at, ok := cuts[p.id]; ok {
		p.cut, p.passed = at, min(p.passed, p.done.base)
	}
	return err
}

// goBack lets the client fetch from where partitions were cut.
func (m *member) goBack(offsets map[int32]kgo.Offset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range offsets {
		if p := m.parts[id]; p != nil && p.cut >= 0 {
			offsets[id] = kgo.NewOffset().At(p.done.base).WithEpoch(p.done.seen)
		}
	}
}

// keepCutOff gives what is in the side log of a message that the main topic has lost a key of its own: its offset belongs to another message now.
func (p *partition) keepCutOff() {
	if p.cut < 0 {
		return
	}
	for key, r := range maps.Clone(p.found) {
		s, ok := stateOf(r)
		if !ok || s.Offset < p.cut {
			continue
		}
		delete(p.found, key)
		p.doubtful[key] = true // it ends under the old one
		if s.Done {
			continue
		}
		c := *r
		c.Key = fmt.Appendf(nil, "t/%d/%d", p.done.seen, s.Offset)
		s.Offset = -1
		c.Headers = []kgo.RecordHeader{s.header()}
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
	for {
		at, err := m.d.committed(ctx, m.topic, m.group)
		if err == nil {
			offsets := map[int32]kgo.Offset{}
			for _, id := range ids {
				m.noteMetadata(id, at[id].Metadata)
				offsets[id] = kgo.NewOffset().At(at[id].At).WithEpoch(at[id].LeaderEpoch)
			}
			err = m.ownAll(ctx, offsets)
		}
		if err == nil {
			break
		}
		if pause(ctx, fetchWait) != nil {
			return
		}
	}
	again := map[int32]kgo.EpochOffset{}
	m.mu.Lock()
	for _, id := range ids {
		if p := m.parts[id]; p != nil {
			again[id] = kgo.EpochOffset{Epoch: p.done.seen, Offset: p.done.base}
		}
	}
	m.mu.Unlock()
	m.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{m.mainName: again})
}

// retake goes back to where partitions of the tiers were cut. What is being fired fires again.
func (w *delays) retake(cl *kgo.Client) {
	again := map[int32]kgo.EpochOffset{}
	var ids []int32
	w.fetching.Lock()
	defer w.fetching.Unlock()
	w.mu.Lock()
	for id, p := range w.parts {
		if p.cutBy == nil {
			continue
		}
		next := &tierPartition{id: id, tier: p.tier, done: p.done.clone(), dirty: true, trimmed: p.trimmed, out: p.out, doubt: p.doubt}
		next.done.cut(p.cutBy.Offset)
		p.lost = true
		w.parts[id] = next
		again[id] = kgo.EpochOffset{Epoch: -1, Offset: next.done.base}
		ids = append(ids, id)
	}
	if len(ids) > 0 {
		w.forgetLost()
	}
	w.mu.Unlock()
	if len(ids) > 0 {
		cl.ResumeFetchPartitions(map[string][]int32{w.d.delayTopic(): ids})
		cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{w.d.delayTopic(): again})
	}
}
