package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// view is a group's unsettled messages: of the member of this process, or of a visit that reads without joining.
type view struct {
	*member
	visit   bool
	release func()
}

// look returns a view of a group that has caught up with what was published before the call.
func (d *Driver) look(ctx context.Context, t *topicState, group string) (*view, error) {
	var row groupRow
	if !d.metaRow(groupKey(t.name, group), &row) {
		return nil, errNoGroup(t.name, group)
	}
	// A visit follows the side log, as a member does, so that only one of them can be there.
	release, err := d.single(ctx, "member/"+t.name+"/"+group)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	m := d.members[d.groupID(t.name, group)]
	d.mu.Unlock()
	if m != nil {
		release()
		return &view{member: m}, m.catchUp(ctx)
	}
	m = d.newMember(t, group, row.Order)
	m.visiting = true
	v := &view{member: m, visit: true, release: release}
	if err := v.read(ctx); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// read loads every partition, up to the window.
func (v *view) read(ctx context.Context) error {
	at, err := v.d.committed(ctx, v.topic, v.group)
	if err != nil {
		return err
	}
	for id, o := range at {
		p, err := v.load(ctx, id, max(0, o.At), o.Metadata)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.parts[id] = p
		from := p.done.next
		v.mu.Unlock()
		if err := v.d.readRange(ctx, v.mainName, id, from, from+windowItems, func(r *kgo.Record) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if r, problem := p.feed(r); r != nil {
				v.bad = append(v.bad, invalid{p, r, problem})
			}
		}); err != nil {
			return err
		}
		v.mu.Lock()
		p.release(p.done.next)
		v.mu.Unlock()
	}
	if len(v.bad) > 0 {
		v.quarantine(ctx, v.bad)
	}
	v.ringDue(time.Now())
	return nil
}

// finish stores what a visit changed.
func (v *view) finish(ctx context.Context) error {
	v.mu.Lock()
	var ps []*partition
	for _, p := range v.parts {
		ps = append(ps, p)
	}
	v.mu.Unlock()
	return unsure("the change", v.commit(ctx, ps...))
}

// close ends a visit.
func (v *view) close() {
	if !v.visit {
		return
	}
	v.mu.Lock()
	parts := v.parts
	v.mu.Unlock()
	for _, p := range parts {
		p.side.close()
	}
	v.cancel()
	v.release()
}

// catchUp waits until what was published before the call is in the queue, or the window is full.
func (m *member) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, session)
	defer cancel()
	ends, err := m.d.admin.ListEndOffsets(ctx, m.mainName)
	if err != nil {
		return unreached("reading offsets", err)
	}
	for {
		m.mu.Lock()
		behind := len(m.parts) < m.topic.partitions
		for id, p := range m.parts {
			end, _ := ends.Lookup(m.mainName, id)
			behind = behind || p.done.next < end.Offset
			if p.side != nil {
				behind = behind || len(p.pending) > 0
			}
		}
		full := m.items >= windowItems
		m.mu.Unlock()
		if !behind || full {
			return nil
		}
		if pause(ctx, 5*time.Millisecond) != nil {
			return nil // others own the rest
		}
	}
}
