package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Move makes messages due, one error each.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	for i := range ms {
		errs[i] = d.moveOne(ctx, &ms[i])
	}
	return errs
}

func (d *Driver) moveOne(ctx context.Context, m *driver.Move) error {
	if err := d.checkEdit(m); err != nil {
		return err
	}
	es, err := d.Get(ctx, m.Target)
	if err != nil {
		return err
	}
	t, err := d.existing(ctx, m.Topic)
	if err != nil {
		return err
	}
	for _, e := range es {
		if e.State == driver.StateReady || e.State == driver.StateInflight {
			return errBusy(e.ID, e.State)
		}
	}
	for _, e := range es {
		if err := d.moveEntry(ctx, t, m, e); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) checkEdit(m *driver.Move) error {
	if m.Edit == nil {
		return nil
	}
	c := *m.Edit
	c.Topic = m.Topic
	return c.Validate(d.caps.MaxBody)
}

func (d *Driver) moveEntry(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	switch e.State {
	case driver.StateInvalid:
		return d.mend(ctx, t, m, e)
	case driver.StateDead:
		if err := d.insert(ctx, t, e.Group, edited(e.Message, m.Edit), fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1), state{
			After: max(0, m.After), Rounds: e.Dead.Rounds + 1, Ref: e.Ref, Spared: !e.Message.PublishedAt.Add(e.TTL).After(time.Now())}); err != nil {
			return err
		}
		return d.endDead(ctx, t, e.Group, e.ID)
	case driver.StateWaiting:
		return d.moveWaiting(ctx, t, m, e)
	}
	rows, err := d.delayedOf(ctx, t.name)
	if err != nil {
		return err
	}
	for _, x := range rows {
		if x.m.ID == e.ID && m.After <= 0 {
			return d.runNow(ctx, t, x, edited(x.m, m.Edit))
		}
		if x.m.ID == e.ID {
			s := state{After: max(0, m.After), Cause: driver.CauseReplay, Ref: delayRef(x.r), Offset: -1}
			return d.delays.rows.put(ctx, d.delayRecord(edited(x.m, m.Edit), s))
		}
	}
	return errNoMessage(m.Target)
}

// runNow fires what is delayed or held before its time: in its topic first, then deleted here.
func (d *Driver) runNow(ctx context.Context, t *topicState, x delayed, msg *driver.Message) error {
	r := toRecord(d.mainTopic(t.name), d.place(t, msg.Key), msg)
	r.Headers = append(r.Headers, state{Cause: driver.CauseReplay, Offset: -1}.header())
	if err := d.produce(ctx, r); err != nil {
		return err
	}
	return d.endDelayed(ctx, x)
}

// edited returns a copy of m with what an operator may change. The id stays.
func edited(m, edit *driver.Message) *driver.Message {
	c := m.Clone()
	if edit != nil {
		e := edit.Clone()
		c.Body, c.ContentType, c.Headers, c.Key, c.Priority = e.Body, e.ContentType, e.Headers, e.Key, e.Priority
		c.MaxAttempts, c.Retry = e.MaxAttempts, e.Retry
	}
	return c
}

// insert adds a message to a group from outside of its owner, who finds it in his side log.
func (d *Driver) insert(ctx context.Context, t *topicState, group string, msg *driver.Message, key string, s state) error {
	s.Insert, s.Loose, s.Tail, s.Cause, s.Offset, s.Order = true, true, true, driver.CauseReplay, -1, 1<<62
	r := &kgo.Record{Topic: d.sideTopic(t.name, group), Partition: d.place(t, msg.Key), Key: []byte(key), Value: envelope.Append(nil, msg),
		Headers: []kgo.RecordHeader{s.header()}}
	if msg.Key == "" && s.Ref.Sub == 0 {
		r.Partition = s.Ref.Partition
	}
	if err := d.produce(ctx, r); err != nil {
		return err
	}
	d.mu.Lock()
	m := d.members[d.groupID(t.name, group)]
	d.mu.Unlock()
	if m == nil {
		return nil
	}
	m.mu.Lock()
	p := m.parts[r.Partition]
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.side.waitFor(ctx, r)
}

// moveWaiting makes an item that waits for a retry, or is parked, due at another time.
func (d *Driver) moveWaiting(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	v, err := d.look(ctx, t, e.Group)
	if err != nil {
		return err
	}
	defer v.close()
	after := max(0, m.After)
	v.mu.Lock()
	it := v.find(e)
	if it == nil || it.state != waiting {
		v.mu.Unlock()
		return errBusy(e.ID, driver.StateReady)
	}
	v.enter(it, inflight) // its old alarm rings in vain
	v.detach(it)
	old := it.msg
	it.msg = edited(old, m.Edit)
	if partitionOf(old.Key, t.partitions) != partitionOf(it.msg.Key, t.partitions) && it.msg.Key != "" {
		v.mu.Unlock()
		return d.rekey(ctx, t, v, it, after)
	}
	rekeyed := it.msg.Key != old.Key // otherwise it keeps its place: in strict order it never leaves the head of its key
	r := v.sideRecord(it, state{After: after, Loose: it.loose || rekeyed, Tail: it.tail || rekeyed, Attempts: it.attempts, Lost: it.lost, Cause: driver.CauseReplay,
		History: envelope.AppendHistory(nil, it.history...)})
	v.mu.Unlock()
	err = d.produce(ctx, r)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		it.msg = old
		v.wait(it)
		return err
	}
	it.cause, it.loose, it.tail = driver.CauseReplay, it.loose || rekeyed, it.tail || rekeyed
	it.p.saved(it, string(r.Key))
	if rekeyed || it.tail && !v.blocks(it) {
		v.places++
		it.place = v.places
	}
	it.due = time.Now().Add(after)
	if after == 0 {
		v.offer(it)
	} else {
		v.wait(it)
	}
	if at := it.expires(); !at.IsZero() {
		v.alarm(at, it, nil)
	}
	return nil
}

func (v *view) find(e driver.Entry) *item {
	for _, p := range v.parts {
		for _, it := range p.items {
			if it.ref == e.Ref && it.msg.ID == e.ID && it.state != gone {
				return it
			}
		}
	}
	return nil
}

// rekey moves an item to the partition of its new key: stored there first, then ended here.
func (d *Driver) rekey(ctx context.Context, t *topicState, v *view, it *item, after time.Duration) error {
	if err := d.insert(ctx, t, v.group, it.msg, fmt.Sprintf("k/%s/%s", it.msg.ID, it.ref), state{After: after, Ref: it.ref,
		Attempts: it.attempts, Lost: it.lost, Rounds: it.rounds, History: envelope.AppendHistory(nil, it.history...)}); err != nil {
		return err
	}
	if err := d.produce(ctx, tombstone(v.sideName, it.p.id, it.sideKey())); err != nil {
		return err
	}
	v.mu.Lock()
	v.remove(it)
	v.mu.Unlock()
	return v.finish(ctx)
}

// mend publishes an invalid record as its edit.
func (d *Driver) mend(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	if m.Edit == nil {
		return driver.NewError(driver.ErrInvalid, "an invalid message has no content to move", "set Move.Edit to what it should be", nil)
	}
	c := m.Edit.Clone()
	c.Topic, c.Delay = t.name, max(0, m.After)
	if c.ID == "" {
		c.ID = "mended-" + e.Ref.String()
	}
	if _, err := d.publish(withoutBound(ctx), []*driver.Message{c}, driver.PublishOptions{}); err != nil {
		return err
	}
	bad, err := d.invalidTable(ctx, t)
	if err != nil {
		return err
	}
	return bad.put(ctx, tombstone(d.invalidTopic(t.name), 0, e.Ref.String()))
}
