package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// SkipLogged does that in all partitions while nobody consumes.
func (d *Groups) SkipLogged(ctx context.Context, t *registry.TopicState, group string, to map[int32]int64) error {
	ids, err := d.registry.PartitionsNow(ctx, t)
	if err != nil {
		return err
	}
	v, err := d.visit(ctx, t, group, ids, false, to)
	if err != nil {
		return err
	}
	for id, p := range v.parts { // nobody else knows it
		if _, err := v.executor.skip(ctx, p, to[id]); err != nil {
			return err
		}
	}
	return nil
}

// Compare counts what a reset changes, and returns the metadata of the new offsets and what the retry log has to say
// before they are set.
func (d *Groups) Compare(ctx context.Context, t *registry.TopicState, group string, to, ends map[int32]int64,
	report *driver.ResetReport) (meta map[int32]string, rs []*kgo.Record, err error) {
	starts, err := d.registry.Position(ctx, t, registry.BeginPosition)
	if err != nil {
		return nil, nil, err
	}
	vs, err := d.Look(ctx, t, group)
	if err != nil {
		return nil, nil, err
	}
	defer vs.Close()
	elsewhere := map[driver.Ref]bool{} // dead, or replayed and not settled
	if err := d.registry.EachDead(ctx, t, group, func(e driver.Entry) { elsewhere[e.Ref] = true }); err != nil {
		return nil, nil, err
	}
	for p := range vs.parts() {
		for it := range p.items.all() {
			if it.offset < 0 {
				elsewhere[it.Ref] = true
			}
		}
	}
	meta = map[int32]string{}
	for p := range vs.parts() {
		from := max(to[p.id], starts[p.id])
		p.compare(to[p.id], from, ends[p.id], report)
		rs = append(rs, p.leaveOut(elsewhere, from, report)...)
		meta[p.id] = fmt.Sprintf("%c%d;%s", offsets.ReplayPart, ends[p.id], offsets.CleanText)
	}
	return meta, rs, nil
}

// leaveOut are records of the retry log by which the next owner does not deliver what is elsewhere once more from the
// main topic, but all that has ended, also what it was told of as such.
func (p *partition) leaveOut(elsewhere map[driver.Ref]bool, from int64, report *driver.ResetReport) (rs []*kgo.Record) {
	if p.standsIn != "" {
		rs = append(rs, loggedAs(p.m.retryName, p.id, standInKey, nil, record.State{Insert: true, Offset: -1}))
	}
	for off, key := range p.ended {
		if off >= from {
			rs = append(rs, loggedAs(p.m.retryName, p.id, key, nil, record.State{Insert: true, Offset: -1}))
		}
	}
	for ref := range elsewhere {
		off := int64(ref.Pos) - 1
		if ref.Partition == p.id && ref.Sub == 0 && off >= from && p.done.Has(off) && p.items.of(off, "") == nil {
			report.Replayed--
			rs = append(rs, loggedAs(p.m.retryName, p.id, fmt.Sprint(mainPrefix, off), []byte{'d'},
				record.State{Insert: true, Offset: off, Done: true}))
		}
	}
	return rs
}

// compare counts what changes in a partition when its group goes to an offset. What is kept begins at from, or later.
func (p *partition) compare(to, from, end int64, report *driver.ResetReport) {
	report.Replayed += int(max(0, p.done.Base-from))
	for off := max(from, p.done.Base); off < min(end, p.done.Next); off++ {
		if p.done.Has(off) {
			report.Replayed++
		}
	}
	report.Skipped += int(max(0, min(to, end)-p.done.Next)) // not fetched yet
	for it := range p.items.all() {
		switch {
		case it.offset < 0:
		case it.offset >= from && p.done.Has(it.offset):
			report.Replayed-- // it is in the retry log, unfinished
		case it.offset < to && it.state == ready:
			report.Skipped++
		}
	}
}

// WhileAway does something to a group while this process is no member of it. Its subscriptions stay.
func (d *Groups) WhileAway(ctx context.Context, t *registry.TopicState, group string, do func() error) error {
	release, err := d.cluster.Single(ctx, "member/"+t.Name+"/"+group)
	if err != nil {
		return err
	}
	defer release()
	m := d.memberIn(t.Name, group)
	if m == nil {
		return do()
	}
	m.suspend()
	err = do()
	return errors.Join(err, m.join())
}

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
	for p := range vs.parts() {
		x.Parts[p.id] = p.done.Clone()
		for it := range p.items.all() {
			if it.logKey != "" {
				x.open[it.Ref] = true
			}
		}
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
