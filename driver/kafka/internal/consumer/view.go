package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// view is unsettled messages of a group: in the partitions that this process owns, or as a visit that reads the others
// without joining.
type view struct {
	*member
	Visit bool
	Busy  bool // a visit: others consume the group, so that only they may change anything
}

// views are all partitions of a group.
type views struct {
	All     []*view
	release func()
}

// Close ends the look.
func (vs *views) Close() {
	for _, v := range vs.All {
		if v.Visit {
			v.cancel()
		}
	}
	vs.release()
}

// Look returns a group as it is now, with all that was published before the call, up to the window.
func (d *Groups) Look(ctx context.Context, t *registry.TopicState, group string) (*views, error) {
	if _, err := d.registry.Group(t.Name, group); err != nil {
		return nil, err
	}
	// Nobody of this process joins meanwhile: a visit may change what has no owner.
	release, err := d.cluster.Single(ctx, "member/"+t.Name+"/"+group)
	if err != nil {
		return nil, err
	}
	vs := &views{release: release}
	m := d.memberIn(t.Name, group)
	others, err := d.registry.PartitionsNow(ctx, t)
	if err == nil && m != nil {
		err = m.catchUp(ctx)
	}
	if err != nil {
		release()
		return nil, err
	}
	if m != nil {
		m.mu.Lock()
		others = slices.DeleteFunc(others, func(id int32) bool { return m.parts[id] != nil })
		m.mu.Unlock()
		vs.All = append(vs.All, &view{member: m})
	}
	if len(others) == 0 {
		return vs, nil
	}
	busy, err := d.Consumers(ctx, t.Name, group)
	if err != nil {
		vs.Close()
		return nil, err
	}
	v, err := d.visit(ctx, t, group, others, busy)
	if err != nil {
		vs.Close()
		return nil, err
	}
	vs.All = append(vs.All, v)
	return vs, nil
}

// visit reads partitions of a group that this process does not own.
func (d *Groups) visit(ctx context.Context, t *registry.TopicState, group string, ids []int32,
	busy bool) (*view, error) {
	if err := d.cluster.StartClock(ctx); err != nil {
		return nil, err
	}
	row, _ := d.registry.Group(t.Name, group) // of one that has gone there is nothing to see
	m := d.newMember(t, group, row.Order)
	m.tenure, m.Generation = snapshot{watched: busy}, -1 // it commits as nobody
	v := &view{member: m, Visit: true, Busy: busy}
	if err := v.read(ctx, ids); err != nil {
		m.cancel()
		return nil, err
	}
	return v, nil
}

// read loads partitions, up to the window.
func (v *view) read(ctx context.Context, ids []int32) error {
	if n := int(slices.Max(ids)) + 1; n > v.topic.Partitions {
		if err := v.d.cluster.Widen(ctx, v.retryName, n); err != nil {
			return err
		}
	}
	at, err := v.d.registry.Committed(ctx, v.topic, v.group)
	if err != nil {
		return err
	}
	ends, err := v.d.registry.Position(ctx, v.topic, registry.EndPosition)
	if err != nil {
		return err
	}
	spans, logs := map[int32][2]int64{}, map[int32][2]int64{}
	for _, id := range ids {
		p := v.newPartition(id, committedAt(at, id))
		if err := p.checkLog(ctx); err != nil {
			return err
		}
		v.parts[id] = p // nobody else knows us yet
		logs[id] = [2]int64{0, 1 << 62}
		if from := p.done.Next; from < ends[id] {
			spans[id] = [2]int64{from, min(ends[id], from+cluster.WindowItems)}
		}
	}
	if err := v.d.cluster.ReadSpans(ctx, v.retryName, logs,
		func(r *kgo.Record) { v.parts[r.Partition].logChanged(r) }); err != nil {
		return err
	}
	v.mu.Lock()
	for id, p := range v.parts {
		p.begin(ends[id])
	}
	v.mu.Unlock()
	if err := v.d.cluster.ReadSpans(ctx, v.mainName, spans, func(r *kgo.Record) {
		v.mu.Lock()
		defer v.mu.Unlock()
		p := v.parts[r.Partition]
		if r, problem := p.feed(v.decode(r)); r != nil {
			v.Bad = append(v.Bad, invalid{p, r, problem})
		}
	}); err != nil {
		return err
	}
	v.mu.Lock()
	for _, p := range v.parts {
		p.release(p.done.Next)
	}
	if v.Busy {
		v.showLeased()
	}
	v.mu.Unlock()
	if v.Busy {
		return nil
	}
	if len(v.Bad) > 0 {
		v.quarantine(ctx, v.Bad)
	}
	v.ringDue(time.Now())
	return nil
}

// showLeased shows what the owner holds as in flight, and hides what is about to expire.
func (v *view) showLeased() {
	now := time.Now()
	for _, p := range v.parts {
		for it := range p.items.all() {
			if it.expired(now) && it.state != gone {
				v.enter(it, gone)
				v.scheduled.Remove(&it.Node)
			}
			if p.done.Before[it.location()] == offsets.LeasedPart && it.state != inflight && it.state != gone {
				v.enter(it, inflight)
				v.withhold(it)
			}
		}
	}
}

// ErrTaken says that somebody joined the group while a visit changed it.
var ErrTaken = errors.New("a consumer joined meanwhile")

// Finish stores what was changed. A visit commits in any case: it is refused when the group has consumers.
func (v *view) Finish(ctx context.Context) error {
	v.mu.Lock()
	var ps []*partition
	for _, p := range v.parts {
		p.dirty = p.dirty || v.Visit
		ps = append(ps, p)
	}
	v.mu.Unlock()
	err := v.commit(ctx, ps...)
	if err != nil && v.Visit {
		return errors.Join(ErrTaken, cluster.Unsure("the change", err))
	}
	return cluster.Unsure("the change", err)
}

// catchUp waits until what was published before the call is in the queue, or the window is full.
func (m *member) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.d.cluster.Settings.Session)
	defer cancel()
	ends, err := m.d.cluster.Offsets(ctx, m.d.cluster.Admin.ListCommittedOffsets, m.mainName)
	if err != nil {
		return err
	}
	for {
		m.mu.Lock()
		behind, wake := !m.joined || len(m.coming) > 0, m.await()
		for id, p := range m.parts {
			behind = behind || p.done.Next < ends[id] || len(p.pending) > 0
		}
		full := m.full()
		m.mu.Unlock()
		if !behind || full {
			return nil
		}
		select {
		case <-wake:
		case <-time.After(cluster.FetchWait):
		case <-ctx.Done():
			return nil // it is late; what there is must do
		}
	}
}
