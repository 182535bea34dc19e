package engine

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// StoreRaw puts undecoded bytes into a topic, as a storage would find them. They are decoded when they are claimed.
func (e *Engine) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := e.now()
	en := e.newEntry(&driver.Message{}, now)
	en.more().raw = append([]byte{}, raw...)
	t, err := e.lock(topic, now)
	if err != nil {
		return err
	}
	e.stored.Add(1)
	t.store(en, now)
	t.secure(true)
	e.durable(ctx, t.unlock(now), &err)
	return err
}

// load makes sure that a message is decoded before it is claimed, and reports whether it moved instead: to its real
// place, which only its decoded form tells, or to the parse errors.
func (t *topic) load(e *entry, now moment) (moved bool) {
	if e.extra == nil || e.extra.raw == nil {
		return false
	}
	m, err := t.decode(e.extra.raw)
	if err != nil {
		t.invalidate(e, err, now)
		return true
	}
	for it := e.items; it != nil; it = it.sibling {
		if it.state == ready {
			it.g.detach(it)
			it.g.countNormal(it, -1)
		}
	}
	t.touch(e)
	t.stats.Bytes -= e.size()
	e.extra = nil
	t.unwatchExpiry(e)
	e.set(m, now)
	if !m.PublishedAt.IsZero() {
		e.published = m.PublishedAt.UnixNano()
	}
	t.stats.Bytes += e.size()
	if _, taken := t.ids.Get(e.id); !taken && e.id != "" {
		t.ids.Put(e)
		e.flags |= indexed
	}
	t.watchExpiry(e)
	for it := e.items; it != nil; it = it.sibling {
		if it.state == ready {
			it.g.countNormal(it, 1)
			it.g.place(it)
		}
	}
	return true
}

func (t *topic) decode(raw []byte) (*driver.Message, error) {
	if t.e.o.Decode == nil {
		return nil, errors.New("no decoder for stored bytes")
	}
	m, err := t.e.o.Decode(raw)
	if err == nil {
		err = m.Validate(t.e.o.Capabilities.MaxBody)
	}
	return m, err
}

// invalidate moves an entry that cannot be decoded to the parse errors of the topic, whole.
func (t *topic) invalidate(e *entry, problem error, now moment) {
	t.touch(e)
	for it := e.items; it != nil; it = it.sibling {
		if it.g != nil && (it.state.live() || it.state == dead) {
			it.g.lift(it)
		}
	}
	e.items, e.state = nil, invalid
	e.extra.problem, e.extra.found = problem.Error(), now.at.UnixNano()
	t.invalid.put(e.seq, e)
	t.stats.Invalid++
}

// lift cancels an item of a message that turned out to be unreadable, even if somebody holds it.
func (g *group) lift(it *item) {
	if it.claim != nil {
		it.claim.end()
	}
	g.detach(it)
	g.stats.Cancelled++
	g.move(it, gone, moment{})
}
