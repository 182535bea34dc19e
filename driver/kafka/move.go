package kafka

import (
	"cmp"
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
	var all []request
	for i := range ms {
		if errs[i] = ms[i].Check(d.caps.MaxBody); errs[i] == nil {
			all = append(all, request{ms[i].Target, &ms[i], &errs[i]})
		}
	}
	for _, q := range d.changeLetters(ctx, all) {
		*q.err = d.moveOne(ctx, q.move)
	}
	return errs
}

func (d *Driver) moveOne(ctx context.Context, m *driver.Move) error {
	t, err := d.existing(ctx, m.Topic)
	if err != nil {
		return err
	}
	if x, err := d.findDelayed(ctx, m.Target); x != nil || err != nil {
		if err != nil {
			return err
		}
		return d.moveDelayed(ctx, t, m, x)
	}
	es, err := d.getSettled(ctx, t, m.Target)
	if err != nil {
		return err
	}
	if err := d.mayMove(ctx, t, m, es); err != nil {
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

// mayMove refuses what belongs to groups where none is named, a dead letter that is not the one that is meant, and another group that has not settled the message.
func (d *Driver) mayMove(ctx context.Context, t *topicState, m *driver.Move, es []driver.Entry) error {
	switch {
	case m.Group == "" && es[0].State != driver.StateInvalid:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("message %q belongs to groups, and none is named", es[0].ID), "name the group", nil)
	case m.Death > 0 && !meant(m.Target, es):
		return m.Outlived()
	}
	if m.To == "" {
		return nil
	}
	var row groupRow
	if !d.metaRow(groupKey(t.name, m.To), &row) {
		return errNoGroup(t.name, m.To)
	}
	there, err := d.getIn(ctx, t, m.To, driver.Target{Topic: t.name, ID: es[0].ID})
	if err == nil && (len(there) > 0 || es[0].State != driver.StateDead) {
		err = errNotSettledIn(es[0].ID, m.Group, m.To)
	}
	return err
}

func errNotSettledIn(id, group, to string) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %q is not dead in group %q, or not settled in group %q", id, group, to),
		"only dead letters go to another group, and only where that group has settled the message", nil)
}

// meant reports whether one of the entries is the dead letter that a target asks for, and none lives.
func meant(target driver.Target, es []driver.Entry) bool {
	for _, e := range es {
		if e.State != driver.StateDead || e.Dead.Rounds != target.Death-1 {
			return false
		}
	}
	return len(es) > 0
}

func (d *Driver) moveEntry(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	switch e.State {
	case driver.StateInvalid:
		return d.mend(ctx, t, m, e)
	case driver.StateDead:
		return d.replay(ctx, t, m, e)
	case driver.StateWaiting:
		return d.moveWaiting(ctx, t, m, e)
	}
	return errNoMessage(m.Target)
}

// replay makes a dead letter due in its group, or in another one.
func (d *Driver) replay(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	r := d.replayed(t, m, e)
	if err := d.changeDead(ctx, t, e, r); err != nil {
		return err
	}
	return d.taken(ctx, t, cmp.Or(m.To, e.Group), r)
}

// moveDelayed makes what is delayed or held due at another time; its old copies are void.
func (d *Driver) moveDelayed(ctx context.Context, t *topicState, m *driver.Move, x *delayed) error {
	if m.After <= 0 {
		return d.changeDelayed(ctx, x, everyStamp, into(d.dueNow(t, edited(x.m, m.Edit))))
	}
	s := state{After: m.After, Cause: driver.CauseReplay, Ref: x.ref, Stamp: x.s.Stamp + 1}
	w, err := d.startDelays(ctx)
	if err != nil {
		return err
	}
	return d.changeDelayed(ctx, x, s.Stamp, into(w.tierRecord(edited(x.m, m.Edit), s, m.After)))
}

// changeDelayed changes what is delayed or held, unless it is about to fire.
func (d *Driver) changeDelayed(ctx context.Context, x *delayed, stamp int64, change making) error {
	w, err := d.startDelays(ctx)
	if err == nil {
		err = w.mayChange(x)
	}
	if err != nil {
		return err
	}
	return w.change(ctx, x, stamp, change)
}

// dueNow is what was delayed or held in its topic.
func (d *Driver) dueNow(t *topicState, msg *driver.Message) *kgo.Record {
	r := toRecord(d.mainTopic(t.name), d.place(t, msg.Key), msg)
	r.Headers = append(r.Headers, state{Cause: driver.CauseReplay, Offset: -1}.header())
	return r
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

// inserted is a message that is added to a group from outside of its owner, who finds it in his side log.
func (d *Driver) inserted(t *topicState, group string, msg *driver.Message, key string, s state) *kgo.Record {
	s.Insert, s.Loose, s.Tail, s.Cause, s.Offset, s.Order = true, true, true, driver.CauseReplay, -1, 1<<62
	r := &kgo.Record{Topic: d.sideTopic(t.name, group), Partition: d.place(t, msg.Key), Key: []byte(key), Value: envelope.Append(nil, msg),
		Headers: []kgo.RecordHeader{s.header()}}
	if msg.Key == "" && s.Ref.Sub == 0 {
		r.Partition = s.Ref.Partition
	}
	return r
}

// taken waits until what was added to a group is in its queue, if this process owns the partition.
func (d *Driver) taken(ctx context.Context, t *topicState, group string, r *kgo.Record) error {
	m := d.memberIn(t.name, group)
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
	c := command{Op: "move", Ref: e.Ref, ID: e.ID, After: max(0, m.After)}
	if m.Edit != nil {
		c.Edit = envelope.Append(nil, m.Edit)
	}
	n, err := d.change(ctx, t, e.Group, c, nil)
	if err == nil && n == 0 {
		err = errBusy(e.ID, driver.StateReady)
	}
	return err
}

// reschedule makes an item that waits due at another time, or another message.
func (m *member) reschedule(ctx context.Context, p *partition, c command, edit *driver.Message) error {
	m.mu.Lock()
	it := p.find(c.Ref, c.ID)
	for it != nil && it.spilled {
		m.mu.Unlock()
		if err := m.fill(ctx, it); err != nil {
			return err
		}
		m.mu.Lock()
		it = p.find(c.Ref, c.ID)
	}
	if it == nil || it.state != waiting {
		m.mu.Unlock()
		return errBusy(c.ID, driver.StateReady)
	}
	m.enter(it, inflight) // its old alarm rings in vain
	m.scheduled.Remove(&it.Node)
	old := it.msg
	it.msg = edited(old, edit)
	if it.msg.Key != "" && partitionOf(old.Key, m.topic.partitions) != partitionOf(it.msg.Key, m.topic.partitions) {
		m.mu.Unlock()
		return m.rekey(ctx, it, old, c.After)
	}
	rekeyed := it.msg.Key != old.Key // otherwise it keeps its place: in strict order it never leaves the head of its key
	s := it.now()
	s.After, s.Loose, s.Tail, s.Cause = c.After, it.loose || rekeyed, it.Tail || rekeyed, driver.CauseReplay
	r := m.sideRecord(it, s)
	m.mu.Unlock()
	err := m.d.produce(ctx, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		it.msg = old
		m.wait(it)
		return err
	}
	it.cause, it.loose, it.Tail = driver.CauseReplay, it.loose || rekeyed, it.Tail || rekeyed
	it.p.saved(it, r)
	if it.due = time.Now().Add(c.After); c.After <= 0 {
		m.becomeDue(it)
	} else {
		m.wait(it)
	}
	if at := it.expires(); !at.IsZero() {
		m.alarm(at, it, nil)
	}
	return nil
}

// rekey moves an item to the partition of its new key: stored there first, then ended here.
func (m *member) rekey(ctx context.Context, it *item, old *driver.Message, after time.Duration) error {
	r := m.d.inserted(m.topic, m.group, it.msg, fmt.Sprintf("k/%s/%s", it.msg.ID, it.ref), state{After: after, Ref: it.ref,
		Attempts: it.attempts, Lost: it.lost, Once: it.once, Rounds: it.rounds, History: envelope.AppendHistory(nil, it.history...)})
	m.mu.Lock()
	end := m.endOf(it)
	m.mu.Unlock()
	err := m.d.exchange(ctx, time.Now().Add(transactFor), []*kgo.Record{r}, []*kgo.Record{end})
	m.mu.Lock()
	if err != nil {
		it.msg = old
		m.wait(it)
		m.mu.Unlock()
		return err
	}
	m.remove(it)
	m.mu.Unlock()
	return m.d.taken(ctx, m.topic, m.group, r)
}

// mend publishes an invalid record as its edit.
func (d *Driver) mend(ctx context.Context, t *topicState, m *driver.Move, e driver.Entry) error {
	if m.Edit == nil {
		return driver.NewError(driver.ErrInvalid, "an invalid message has no content to move", "set Move.Edit to what it should be", nil)
	}
	c := m.Edit.Clone()
	c.Topic, c.Delay, c.At = t.name, max(0, m.After), time.Time{}
	if c.ID == "" {
		c.ID = "mended-" + e.Ref.String()
	}
	var made *call
	err := d.changeInvalid(ctx, t, e.Ref, func(ctx context.Context) (_ []*kgo.Record, err error) {
		made, err = d.prepareOne(withoutBound(ctx), c)
		return made.records(), err
	})
	if made != nil {
		made.resolve(d.known, err == nil) // also when nobody knows: stored twice is better than never
	}
	return err
}
