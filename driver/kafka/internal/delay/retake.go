package delay

import "github.com/twmb/franz-go/pkg/kgo"

// retake goes back to where partitions of the tiers were cut. What is being fired fires again.
func (w *firer) retake(cl *kgo.Client) {
	again := map[int32]kgo.EpochOffset{}
	var ids []int32
	w.fetching.Lock()
	defer w.fetching.Unlock()
	w.mu.Lock()
	for id, p := range w.parts {
		if p.cutBy == nil {
			continue
		}
		next := &tierPartition{id: id, tier: p.tier, done: p.done.Clone(), dirty: true, trimmed: p.trimmed, out: p.out,
			doubt: p.doubt}
		next.done.Cut(p.cutBy.Offset)
		p.lost = true
		w.parts[id] = next
		again[id] = kgo.EpochOffset{Epoch: -1, Offset: next.done.Base}
		ids = append(ids, id)
	}
	if len(ids) > 0 {
		w.forgetLost()
	}
	w.mu.Unlock()
	if len(ids) > 0 {
		cl.ResumeFetchPartitions(map[string][]int32{w.d.cluster.DelayTopic(): ids})
		cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{w.d.cluster.DelayTopic(): again})
	}
}
