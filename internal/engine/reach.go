package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// lockReaching is lockExisting for a call that names a message: if that is cold, it is in memory afterwards.
func (e *Engine) lockReaching(ctx context.Context, target driver.Target, now moment) (*topic, error) {
	tried := false
	for {
		t, err := e.lockExisting(target.Topic, now)
		if err != nil {
			return nil, err
		}
		var w *thaw
		if r := target.Ref; r.IsZero() {
			w = t.reachID(target.ID)
		} else if r.Partition == 0 && r.Sub == 0 && !tried && t.log.get(r.Pos) == nil && t.cold.find(r.Pos) >= 0 {
			w = t.beginThaw(r.Pos, r.Pos)
			w.done = func() { tried = true } // it may have been gone before
		}
		if w == nil {
			return t, nil
		}
		if err := w.run(ctx, t.unlock(now)); err != nil {
			return nil, err
		}
	}
}

// reachID prepares reading a cold message that may have an id; nil if there is none. The topic is locked, and the
// caller runs it once it has unlocked the topic.
func (t *topic) reachID(id string) *thaw {
	if _, ok := t.ids.Get(id); ok || id == "" || t.cold.count == 0 {
		return nil
	}
	hash := t.cold.ids.hash(id)
	seq := t.cold.ids.find(hash)
	if seq == 0 {
		return nil
	}
	w := t.beginThaw(seq, seq)
	w.done = func() { t.cold.ids.remove(hash, seq) } // whatever its id is: it is in memory, or gone
	return w
}

// reachDuplicate is reachID for the ids of new messages.
func (t *topic) reachDuplicate(entries ...*entry) *thaw {
	if t.cold.count == 0 {
		return nil
	}
	for _, en := range entries {
		if en == nil {
			continue
		}
		if w := t.reachID(en.id); w != nil {
			return w
		}
	}
	return nil
}

// lockNew is lock for new messages: what is cold and has the id of one of them is in memory afterwards, so that
// duplicates are found.
func (e *Engine) lockNew(ctx context.Context, topic string, entries []*entry, now moment) (*topic, error) {
	for {
		t, err := e.lock(topic, now)
		if err != nil {
			return nil, err
		}
		w := t.reachDuplicate(entries...)
		if w == nil {
			return t, nil
		}
		if err := w.run(ctx, t.unlock(now)); err != nil {
			return nil, notApplied(err)
		}
	}
}

// lockAllNew is lockNew for several topics.
func (e *Engine) lockAllNew(ctx context.Context, names []string, msgs []*driver.Message, entries []*entry,
	now moment) (map[string]*topic, error) {
	for {
		ts, err := e.lockAll(names, now)
		if err != nil {
			return nil, err
		}
		var w *thaw
		for i, m := range msgs {
			if w == nil {
				w = ts[m.Topic].reachDuplicate(entries[i])
			}
		}
		if w == nil {
			return ts, nil
		}
		if err := w.run(ctx, e.unlockAll(ts, now)); err != nil {
			return nil, notApplied(err)
		}
	}
}

// notApplied says of an error that nothing was published.
func notApplied(err error) error {
	return driver.NewError(driver.ErrNotApplied, "whether the id is known already could not be looked up",
		"publish again with the same id", err)
}

// melt brings all that is cold into memory, part by part, for a call that needs every message; use, if not nil, gets
// each part before anybody else. While it does, nothing becomes cold. The topic is locked before, and after unless it
// fails.
func (t *topic) melt(ctx context.Context, now moment, use func(t *topic, es []*entry, now moment)) error {
	t.cold.melting++
	for t.cold.count > 0 {
		s := t.cold.stretches[0]
		w := t.beginThaw(s.first, s.last)
		w.use = use
		err := w.run(ctx, t.unlock(now))
		t.mu.Lock()
		if t.ended {
			t.mu.Unlock()
			if t.e.isClosed() {
				return refusal.Closed()
			}
			return t.e.noTopic(t.name)
		}
		if err != nil {
			t.cold.melting--
			t.unlock(now)
			return err
		}
	}
	t.cold.melting--
	return nil
}

// wholeChange is a step that concerns every message of a topic.
type wholeChange struct {
	// check says whether it is possible.
	check func(t *topic, now moment) error
	// each changes some messages: what is cold is changed in several steps. Nil: nothing is done with them alone.
	each func(t *topic, es []*entry, now moment)
	// end changes the rest, when all messages are in memory. Nil: there is none.
	end func(t *topic, now moment)
}

// changeWhole takes such a step, and waits until it is safe. It is refused unless it is possible before and after cold
// messages are read: others go on meanwhile.
func (e *Engine) changeWhole(ctx context.Context, name string, c wholeChange) (err error) {
	now := e.now()
	t, err := e.lockExisting(name, now)
	if err != nil {
		return err
	}
	if err = c.check(t, now); err == nil && t.cold.count > 0 {
		if err := t.melt(ctx, now, c.each); err != nil {
			return err
		}
		err = c.check(t, now)
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	if err != nil {
		return err
	}
	t.alter()
	if c.each != nil {
		c.each(t, t.log.all(), now)
	}
	if c.end != nil {
		c.end(t, now)
	}
	return nil
}
