package engine

import (
	"cmp"
	"context"

	"github.com/ferrymq/ferry/driver"
)

// StoreRaw puts bytes that cannot be decoded into a topic, as a storage would find them. That is seen when they are
// claimed.
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

// load moves a message whose bytes cannot be decoded to the parse errors before it is claimed, and reports whether it
// did.
func (t *topic) load(e *entry, now moment) (moved bool) {
	if e.extra == nil || e.extra.raw == nil {
		return false
	}
	_, err := decodeMessage(e.extra.raw, t.name)
	t.invalidate(e, cmp.Or(err, errCutOff), now)
	return true
}

// invalidate moves an entry that cannot be decoded to the parse errors of the topic, whole.
func (t *topic) invalidate(e *entry, problem error, now moment) {
	t.touch(e)
	for it := range e.all() {
		if it.state.live() || it.state == dead {
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
