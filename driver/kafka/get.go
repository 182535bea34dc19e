package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

func named(t driver.Target, ref driver.Ref, id string) bool {
	if !t.Ref.IsZero() {
		return ref == t.Ref
	}
	return id == t.ID && id != ""
}

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	if err := target.Check(); err != nil {
		return nil, err
	}
	t, err := d.existing(ctx, target.Topic)
	if err != nil {
		return nil, err
	}
	if target.Death > 0 && target.Group != "" { // what else there is of the message does not matter
		if found, err := d.findDead(ctx, t, target.Group, target); len(found) > 0 || err != nil {
			return found, err
		}
	}
	if x, err := d.findDelayed(ctx, target); err != nil {
		return nil, err
	} else if x != nil {
		return []driver.Entry{x.entry()}, nil
	}
	return d.getSettled(ctx, t, target)
}

// getSettled returns a message that has been due, as every group sees it.
func (d *Driver) getSettled(ctx context.Context, t *topicState, target driver.Target) ([]driver.Entry, error) {
	var row groupRow
	if target.Group != "" && !d.metaRow(groupKey(t.name, target.Group), &row) {
		return nil, errNoGroup(t.name, target.Group)
	}
	var out []driver.Entry
	var err error
	for _, g := range d.groupsOf(t.name) {
		if target.Group != "" && target.Group != g {
			continue
		}
		es, err := d.getIn(ctx, t, g, target)
		if err != nil {
			return nil, err
		}
		out = append(out, es...)
	}
	if len(out) == 0 && target.Group == "" && !target.Ref.IsZero() {
		if out, err = d.getInvalid(ctx, t, target.Ref); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 && d.rowOf(t).Config.Keep > 0 {
		if out, err = d.getKept(ctx, t, target); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errNoMessage(target)
	}
	return out, nil
}

func (d *Driver) getInvalid(ctx context.Context, t *topicState, ref driver.Ref) ([]driver.Entry, error) {
	x, err := d.invalidRows(ctx, t)
	if err != nil {
		return nil, err
	}
	at, ok := x.find(ref.String())
	if !ok {
		return nil, nil
	}
	return x.read(ctx, []row{at}, invalidEntry)
}

// getKept looks for a settled message among what TopicConfig.Keep holds: at its offset, or in all that is young enough.
func (d *Driver) getKept(ctx context.Context, t *topicState, target driver.Target) (out []driver.Entry, err error) {
	from, err := d.position(ctx, t, driver.Position{From: driver.FromTime, Time: d.now().Add(-d.rowOf(t).Config.Keep - keepGrace)})
	if err != nil {
		return nil, err
	}
	for id, at := range from {
		err := d.readRange(ctx, d.mainTopic(t.name), id, at, at+windowItems, func(r *kgo.Record) {
			m, err := fromRecord(t.name, r)
			if err != nil || isLate(r) || !named(target, refOf(r), m.ID) || m.TTL > 0 && time.Since(m.PublishedAt) > m.TTL {
				return
			}
			for _, g := range d.groupsOf(t.name) {
				if target.Group == "" || target.Group == g {
					out = append(out, driver.Entry{Message: m, Ref: refOf(r), Group: g, State: driver.StateDone, Attempt: 1, Deliveries: 1})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Driver) getIn(ctx context.Context, t *topicState, group string, target driver.Target) ([]driver.Entry, error) {
	var out []driver.Entry
	vs, err := d.look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.close()
	for _, f := range vs.entries(func(it *item) bool { return named(target, it.ref, it.msg.ID) }) {
		if err := d.whole(ctx, &f); err != nil {
			return nil, err
		}
		out = append(out, f.Entry)
	}
	if len(out) == 0 && vs.unread(target.Ref) {
		return d.getUnread(ctx, t, group, target.Ref)
	}
	dead, err := d.findDead(ctx, t, group, target)
	return append(out, dead...), err
}

// unread reports whether a place in the main topic lies beyond what was read of its partition.
func (vs *views) unread(ref driver.Ref) bool {
	if ref.IsZero() || ref.Sub != 0 {
		return false
	}
	for _, v := range vs.all {
		v.mu.Lock()
		p := v.parts[ref.Partition]
		found := p != nil && int64(ref.Pos)-1 >= p.done.next && !p.done.has(int64(ref.Pos)-1)
		v.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}

// getUnread reads a message that no owner has fetched yet: it is ready.
func (d *Driver) getUnread(ctx context.Context, t *topicState, group string, ref driver.Ref) ([]driver.Entry, error) {
	r, err := d.readOne(ctx, d.mainTopic(t.name), ref.Partition, int64(ref.Pos)-1)
	if r == nil || err != nil {
		return nil, err
	}
	m, err := fromRecord(t.name, r)
	if err != nil || isLate(r) {
		return nil, nil // it will be among the invalid, or is void
	}
	return []driver.Entry{{Message: m, Ref: ref, Group: group, State: driver.StateReady, Attempt: 1, Deliveries: 1}}, nil
}
