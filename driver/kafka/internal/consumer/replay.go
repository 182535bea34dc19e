package consumer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// settledBy is what a group has settled, as it was when we looked.
type settledBy struct {
	d     *Groups
	t     *registry.TopicState
	group string
	Parts map[int32]*offsets.Set
	open  map[driver.Ref]bool // done in the main topic, and unfinished in the retry log
	dead  *compacted.Index
}

// SettledOf looks at what a group has settled.
func (d *Groups) SettledOf(ctx context.Context, t *registry.TopicState, group string) (*settledBy, error) {
	dead, err := d.registry.DeadLetters(ctx, t)
	if err == nil {
		err = dead.Whole()
	}
	if err != nil {
		return nil, err
	}
	vs, err := d.Look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.Close()
	x := &settledBy{d: d, t: t, group: group, Parts: map[int32]*offsets.Set{}, open: map[driver.Ref]bool{}, dead: dead}
	for _, v := range vs.All {
		v.mu.Lock()
		for id, p := range v.parts {
			x.Parts[id] = p.done.Clone()
			for it := range p.items.all() {
				if it.logKey != "" {
					x.open[it.Ref] = true
				}
			}
		}
		v.mu.Unlock()
	}
	return x, nil
}

// Again returns records for the retry log of what was settled between two offsets.
func (x *settledBy) Again(ctx context.Context, partition int32, from, to int64) (rs []*kgo.Record, err error) {
	done, now := x.Parts[partition], x.d.cluster.Now()
	err = x.d.cluster.ReadRange(ctx, x.d.cluster.MainTopic(x.t.Name), partition, from, to, func(r *kgo.Record) {
		if !done.Has(r.Offset) || x.open[record.RefOf(r)] || r.Attrs.IsControl() || record.IsLate(r) {
			return
		}
		m, err := record.FromRecord(x.t.Name, r)
		if err != nil || x.d.cluster.Settings.RejectForeign && !record.Ours(r) || m.TTL > 0 &&
			!m.PublishedAt.Add(m.TTL).After(now) {
			return
		}
		if _, dead := x.dead.Find(record.DeadName(x.group, m.ID)); dead {
			return
		}
		rs = append(rs, x.d.Inserted(x.t, x.group, m, fmt.Sprintf("r/%s/%d", m.ID, 0), record.State{Ref: record.RefOf(r)}))
	})
	return rs, err
}
