package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// replayAtOnce is how many records are read, and stored again, at the same time.
const replayAtOnce = 500

// Replay adds what a group has settled of what is kept to its side log, in the order it was published, like dead letters that are replayed. What is not settled, dead or past its TTL
// is left as it is. A replay that was broken off may be repeated: what it has added and is not settled is not added again.
func (d *Driver) Replay(ctx context.Context, topic, group string, o driver.ReplayOptions) (driver.ResetReport, error) {
	report := driver.ResetReport{}
	if err := o.Check(topic, group); err != nil {
		return report, err
	}
	t, err := d.existing(ctx, topic)
	if err != nil {
		return report, err
	}
	if err := d.checkGroup(t, group); err != nil || d.rowOf(t).Config.Keep <= 0 {
		return report, err
	}
	if o.From.From == driver.FromEnd {
		o.From = beginPosition
	}
	from, err := d.position(ctx, t, o.From)
	if err != nil {
		return report, err
	}
	to, err := d.position(ctx, t, o.To)
	if err != nil {
		return report, err
	}
	x, err := d.settledOf(ctx, t, group)
	if err != nil {
		return report, err
	}
	for _, id := range slices.Sorted(maps.Keys(x.parts)) {
		for at := from[id]; at < min(to[id], x.parts[id].next); at += replayAtOnce {
			rs, err := x.again(ctx, id, at, min(at+replayAtOnce, to[id], x.parts[id].next))
			if err == nil && !o.DryRun {
				err = d.replayAll(ctx, t, group, rs)
			}
			if err != nil {
				return report, err
			}
			report.Replayed += len(rs)
		}
	}
	return report, nil
}

// replayAll stores records in a side log. Those of one call are of one partition of the main topic.
func (d *Driver) replayAll(ctx context.Context, t *topicState, group string, rs []*kgo.Record) error {
	if len(rs) == 0 {
		return nil
	}
	if err := d.produce(ctx, rs...); err != nil {
		return err
	}
	return d.taken(ctx, t, group, rs[len(rs)-1])
}

// settledBy is what a group has settled, as it was when we looked.
type settledBy struct {
	d     *Driver
	t     *topicState
	group string
	parts map[int32]*doneSet
	open  map[driver.Ref]bool // done in the main topic, and unfinished in the side log
	dead  *index
}

func (d *Driver) settledOf(ctx context.Context, t *topicState, group string) (*settledBy, error) {
	dead, err := d.deadLetters(ctx, t)
	if err == nil {
		err = dead.whole()
	}
	if err != nil {
		return nil, err
	}
	vs, err := d.look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.close()
	x := &settledBy{d: d, t: t, group: group, parts: map[int32]*doneSet{}, open: map[driver.Ref]bool{}, dead: dead}
	for _, v := range vs.all {
		v.mu.Lock()
		for id, p := range v.parts {
			x.parts[id] = p.done.clone()
			for it := range p.items.all() {
				if it.side != "" {
					x.open[it.ref] = true
				}
			}
		}
		v.mu.Unlock()
	}
	return x, nil
}

// again returns records for the side log of what was settled between two offsets.
func (x *settledBy) again(ctx context.Context, partition int32, from, to int64) (rs []*kgo.Record, err error) {
	done, now := x.parts[partition], x.d.now()
	err = x.d.readRange(ctx, x.d.mainTopic(x.t.name), partition, from, to, func(r *kgo.Record) {
		if !done.has(r.Offset) || x.open[refOf(r)] || r.Attrs.IsControl() || isLate(r) {
			return
		}
		m, err := fromRecord(x.t.name, r)
		if err != nil || x.d.o.RejectForeign && !ours(r) || m.TTL > 0 && !m.PublishedAt.Add(m.TTL).After(now) {
			return
		}
		if _, dead := x.dead.find(deadName(x.group, m.ID)); dead {
			return
		}
		rs = append(rs, x.d.inserted(x.t, x.group, m, fmt.Sprintf("r/%s/%d", m.ID, 0), state{Ref: refOf(r)}))
	})
	return rs, err
}
