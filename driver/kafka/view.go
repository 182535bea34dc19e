package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// view is unsettled messages of a group: in the partitions that this process owns, or as a visit that reads the others
// without joining.
type view struct {
	*member
	visit bool
	busy  bool // a visit: others consume the group, so that only they may change anything
}

// views are all partitions of a group.
type views struct {
	all     []*view
	release func()
}

func (vs *views) close() {
	for _, v := range vs.all {
		if v.visit {
			v.cancel()
		}
	}
	vs.release()
}

// look returns a group as it is now, with all that was published before the call, up to the window.
func (d *Driver) look(ctx context.Context, t *topicState, group string) (*views, error) {
	var row groupRow
	if !d.metaRow(groupKey(t.name, group), &row) {
		return nil, errNoGroup(t.name, group)
	}
	// Nobody of this process joins meanwhile: a visit may change what has no owner.
	release, err := d.single(ctx, "member/"+t.name+"/"+group)
	if err != nil {
		return nil, err
	}
	vs := &views{release: release}
	d.mu.Lock()
	m := d.members[d.groupID(t.name, group)]
	d.mu.Unlock()
	others, err := d.partitionsNow(ctx, t)
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
		vs.all = append(vs.all, &view{member: m})
	}
	if len(others) == 0 {
		return vs, nil
	}
	busy, err := d.consumers(ctx, t.name, group)
	if err != nil {
		vs.close()
		return nil, err
	}
	v, err := d.visit(ctx, t, group, row, others, busy)
	if err != nil {
		vs.close()
		return nil, err
	}
	vs.all = append(vs.all, v)
	return vs, nil
}

// visit reads partitions of a group that this process does not own.
func (d *Driver) visit(ctx context.Context, t *topicState, group string, row groupRow, ids []int32, busy bool) (*view, error) {
	if err := d.startClock(ctx); err != nil {
		return nil, err
	}
	m := d.newMember(t, group, row.Order)
	m.visiting, m.watching = true, busy
	v := &view{member: m, visit: true, busy: busy}
	if err := v.read(ctx, ids); err != nil {
		m.cancel()
		return nil, err
	}
	return v, nil
}

// read loads partitions, up to the window.
func (v *view) read(ctx context.Context, ids []int32) error {
	if n := int(slices.Max(ids)) + 1; n > v.topic.partitions {
		if err := v.d.widen(ctx, v.sideName, n); err != nil {
			return err
		}
	}
	at, err := v.d.committed(ctx, v.topic, v.group)
	if err != nil {
		return err
	}
	ends, err := v.d.position(ctx, v.topic, endPosition)
	if err != nil {
		return err
	}
	spans, sides := map[int32][2]int64{}, map[int32][2]int64{}
	for _, id := range ids {
		p := v.newPartition(id, kgo.EpochOffset{Epoch: at[id].LeaderEpoch, Offset: at[id].At}, at[id].Metadata)
		if err := p.checkLog(ctx); err != nil {
			return err
		}
		v.parts[id] = p // nobody else knows us yet
		sides[id] = [2]int64{0, 1 << 62}
		if from := p.done.next; from < ends[id] {
			spans[id] = [2]int64{from, min(ends[id], from+windowItems)}
		}
	}
	if err := v.d.readSpans(ctx, v.sideName, sides, func(r *kgo.Record) { v.parts[r.Partition].sideChanged(r) }); err != nil {
		return err
	}
	v.mu.Lock()
	for id, p := range v.parts {
		p.begin(ends[id])
	}
	v.mu.Unlock()
	if err := v.d.readSpans(ctx, v.mainName, spans, func(r *kgo.Record) {
		v.mu.Lock()
		defer v.mu.Unlock()
		p := v.parts[r.Partition]
		if r, problem := p.feed(v.decode(r)); r != nil {
			v.bad = append(v.bad, invalid{p, r, problem})
		}
	}); err != nil {
		return err
	}
	v.mu.Lock()
	for _, p := range v.parts {
		p.release(p.done.next)
	}
	if v.busy {
		v.markHeld()
	}
	v.mu.Unlock()
	if v.busy {
		return nil
	}
	if len(v.bad) > 0 {
		v.quarantine(ctx, v.bad)
	}
	v.ringDue(time.Now())
	return nil
}

// markHeld shows what the owner holds as in flight, and hides what he is about to expire.
func (v *view) markHeld() {
	now := time.Now()
	for _, p := range v.parts {
		for it := range p.items.all() {
			if it.expired(now) && it.state != gone {
				v.enter(it, gone)
				v.scheduled.Remove(&it.Node)
			}
			if p.done.before[it.placeNow()] == heldPart && it.state != inflight && it.state != gone {
				v.enter(it, inflight)
				v.withhold(it)
			}
		}
	}
}

// errTaken says that somebody joined the group while a visit changed it.
var errTaken = errors.New("a consumer joined meanwhile")

// finish stores what was changed. A visit commits in any case: it is refused when the group has consumers.
func (v *view) finish(ctx context.Context) error {
	v.mu.Lock()
	var ps []*partition
	for _, p := range v.parts {
		p.dirty = p.dirty || v.visit
		ps = append(ps, p)
	}
	v.mu.Unlock()
	err := v.commit(ctx, ps...)
	if err != nil && v.visit {
		return errors.Join(errTaken, unsure("the change", err))
	}
	return unsure("the change", err)
}

// catchUp waits until what was published before the call is in the queue, or the window is full.
func (m *member) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.d.o.Session)
	defer cancel()
	ends, err := m.d.admin.ListCommittedOffsets(ctx, m.mainName)
	if err != nil {
		return m.d.unreached("reading offsets", err)
	}
	for {
		m.mu.Lock()
		behind, wake := !m.joined || len(m.coming) > 0, m.await()
		for id, p := range m.parts {
			end, _ := ends.Lookup(m.mainName, id)
			behind = behind || p.done.next < end.Offset || len(p.pending) > 0
		}
		full := m.full()
		m.mu.Unlock()
		if !behind || full {
			return nil
		}
		select {
		case <-wake:
		case <-time.After(fetchWait):
		case <-ctx.Done():
			return nil // it is late; what there is must do
		}
	}
}
