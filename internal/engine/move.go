package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Move makes messages due, each in one step.
func (e *Engine) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	for i := range ms {
		errs[i] = e.moveOne(ctx, &ms[i])
	}
	return errs
}

func (e *Engine) moveOne(ctx context.Context, m *driver.Move) (err error) {
	if err := m.Check(e.o.Capabilities.MaxBody); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lockWarm(ctx, m, now)
	if err != nil {
		return err
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	t.alter()
	en, err := t.find(m.Target)
	if err != nil {
		return err
	}
	switch {
	case en.state == invalid:
		return t.republish(en, m, now)
	case en.state == delayed || en.state == held:
		return t.reschedule(en, m, now)
	case m.Group == "":
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("message %s belongs to groups, and none is named",
			describe(m.Target)), "name the group", nil)
	}
	it, err := t.findItem(en, m.Target)
	switch {
	case err != nil:
		return err
	case !it.meant(m.Target):
		return m.Outlived()
	case m.To != "":
		return t.handOver(it, m, now)
	}
	return it.g.reviveOne(it, m, now)
}

// meant reports whether an item is the dead letter that a target asks for, if it asks for one.
func (it *item) meant(target driver.Target) bool {
	return target.Death == 0 || it.state == dead && int(it.more.rounds) == target.Death-1
}

// handOver gives a dead letter of one group to another one.
func (t *topic) handOver(it *item, m *driver.Move, now moment) error {
	to, err := t.mustGroup(m.To)
	if err != nil {
		return err
	}
	other := it.e.item(to)
	if it.state != dead || other != nil && other.state != done {
		return driver.NewError(driver.ErrConflict,
			fmt.Sprintf("message %s is not dead in group %q, or not settled in group %q", describe(m.Target), m.Group, m.To),
			"only dead letters go to another group, and only where that group has settled the message", nil)
	}
	if it.e.expired(now) {
		t.spare(it.e)
	}
	if other == nil {
		other = it.e.newItem(to)
	}
	other.startOver()
	other.cause, other.more = driver.CauseReplay, &record{edited: it.more.edited, rounds: it.more.rounds + 1}
	if m.Edit != nil {
		other.edit(m.Edit)
	}
	to.stats.Received++
	to.dueAfter(other, m.After, true, now)
	it.g.cancel(it, now)
	return nil
}

// republish replaces an entry that could not be decoded by what the operator wrote.
func (t *topic) republish(e *entry, m *driver.Move, now moment) error {
	if m.Edit == nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("message %s cannot be decoded", describe(m.Target)),
			"give its content in Edit, or delete it", nil)
	}
	msg := *m.Edit
	msg.Topic, msg.Delay, msg.At = t.name, m.After, time.Time{}
	if msg.ID == "" {
		msg.ID = driver.EmitID(t.name+"/invalid", int(e.seq))
	}
	fresh := t.e.newEntry(&msg, now)
	if _, ok := t.duplicate(fresh); ok {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q knows message %q already", t.name, msg.ID),
			"give another ID in Edit", nil)
	}
	t.erase(e, now)
	t.e.stored.Add(1)
	t.store(fresh, now)
	return nil
}

// reschedule makes a delayed or held message due after m.After.
func (t *topic) reschedule(e *entry, m *driver.Move, now moment) error {
	if m.Group != "" {
		_, err := t.findItem(e, m.Target)
		return err
	}
	if m.Edit != nil {
		t.uncache(e)
		t.stats.Bytes -= e.size()
		e.setContent(m.Edit)
		t.stats.Bytes += e.size()
		e.flags &^= saved
		t.touch(e)
	}
	if m.After <= 0 {
		t.fanOut(e, now)
		return nil
	}
	t.takeOut(e)
	e.due = now.after(m.After)
	t.delay(e)
	return nil
}

// reviveOne makes a dead letter or a waiting message due after m.After.
func (g *group) reviveOne(it *item, m *driver.Move, now moment) error {
	if it.state != dead && it.state != waiting {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s is %s", describe(m.Target), it.state),
			"only dead letters, waiting, delayed, held and invalid messages can be moved", nil)
	}
	replayed, moved := it.state == dead, m.Edit != nil && m.Edit.Key != it.content().key
	toTail := replayed || moved || it.Tail
	if it.e.expired(now) {
		g.t.spare(it.e)
	}
	if replayed {
		it.startOver()
		it.more.rounds++
	}
	it.cause = driver.CauseReplay
	if toTail || m.Edit != nil {
		g.detach(it)
	} else {
		g.stopWaiting(it) // it keeps its place in its key
	}
	if m.Edit != nil {
		it.edit(m.Edit)
	}
	g.dueAfter(it, m.After, toTail, now)
	return nil
}

// spare lets a message live that is past its TTL, because an operator wants it delivered.
func (t *topic) spare(e *entry) {
	t.unwatchExpiry(e)
	e.expiry.at = never
}

// edit replaces the content for this group. The entry stays as it is: other groups, and calls of Receive that read it
// without the lock, still see it.
func (it *item) edit(m *driver.Message) {
	it.record().edited = contentOf(m)
}

func contentOf(m *driver.Message) *entry {
	c := &entry{}
	c.setContent(m)
	return c
}
