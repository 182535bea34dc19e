package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// place is where a message lies.
type place struct {
	t   *topic
	seq uint64
}

// lockReaching is lockExisting for a call that names a message: if that is cold, it is in memory afterwards.
func (e *Engine) lockReaching(ctx context.Context, target driver.Target, now moment) (*topic, error) {
	var tried map[place]bool
	for {
		t, err := e.lockExisting(target.Topic, now)
		if err != nil || t.cold.count == 0 {
			return t, err
		}
		seq := t.coldTarget(target, tried)
		if seq == 0 {
			return t, nil
		}
		id := target.ID
		if !target.Ref.IsZero() {
			id = ""
		}
		if err := t.beginReach(seq, id, &tried).run(ctx, t.unlock(now), nil); err != nil {
			return nil, err
		}
	}
}

// coldTarget returns the place of a cold message that a target may name, or 0.
func (t *topic) coldTarget(target driver.Target, tried map[place]bool) uint64 {
	if target.Ref.IsZero() {
		return t.coldID(target.ID, tried)
	}
	if r := target.Ref; r.Partition == 0 && r.Sub == 0 && t.log.get(r.Pos) == nil && t.cold.find(r.Pos) >= 0 &&
		!tried[place{t, r.Pos}] {
		return r.Pos
	}
	return 0
}

// coldID returns the place of a cold message that may have an id, or 0.
func (t *topic) coldID(id string, tried map[place]bool) (at uint64) {
	if _, ok := t.ids.Get(id); ok || id == "" {
		return 0
	}
	t.cold.ids.find(t.cold.ids.hash(id), func(seq uint64) {
		if !tried[place{t, seq}] {
			at = seq
		}
	})
	return at
}

// beginReach prepares reading one cold message, if it is there and, unless id is empty, has that id. The topic is
// locked, and the caller runs it once it has unlocked the topic.
func (t *topic) beginReach(seq uint64, id string, tried *map[place]bool) *thaw {
	w := t.beginThaw(seq, seq)
	if w.others != nil {
		return w
	}
	if w.id = id; *tried == nil {
		*tried = map[place]bool{}
	}
	(*tried)[place{t, seq}] = true
	return w
}

// lockNew is lock for new messages: what is cold and has the id of one of them is in memory afterwards, so that
// duplicates are found.
func (e *Engine) lockNew(ctx context.Context, topic string, entries []*entry, now moment) (*topic, error) {
	var tried map[place]bool
	for {
		t, err := e.lock(topic, now)
		if err != nil || t.cold.count == 0 {
			return t, err
		}
		seq, id := t.coldDuplicate(entries, tried)
		if seq == 0 {
			return t, nil
		}
		if err := t.beginReach(seq, id, &tried).run(ctx, t.unlock(now), nil); err != nil {
			return nil, notApplied(err)
		}
	}
}

// coldDuplicate returns the place of a cold message that may have the id of a new one, and that id.
func (t *topic) coldDuplicate(entries []*entry, tried map[place]bool) (seq uint64, id string) {
	for _, en := range entries {
		if en == nil {
			continue
		}
		if seq := t.coldID(en.id, tried); seq > 0 {
			return seq, en.id
		}
	}
	return 0, ""
}

// lockAllNew is lockNew for several topics.
func (e *Engine) lockAllNew(ctx context.Context, names []string, msgs []*driver.Message, entries []*entry,
	now moment) (map[string]*topic, error) {
	var tried map[place]bool
	for {
		ts, err := e.lockAll(names, now)
		if err != nil {
			return nil, err
		}
		var read *thaw
		for i, m := range msgs {
			if t := ts[m.Topic]; read == nil && t.cold.count > 0 {
				if seq := t.coldID(entries[i].id, tried); seq > 0 {
					read = t.beginReach(seq, entries[i].id, &tried)
				}
			}
		}
		if read == nil {
			return ts, nil
		}
		if err := read.run(ctx, e.unlockAll(ts, now), nil); err != nil {
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
func (e *Engine) melt(ctx context.Context, t *topic, now moment, use func(t *topic, es []*entry, now moment)) (*topic,
	error) {
	t.cold.melting++
	for t.cold.count > 0 {
		s := t.cold.stretches.head()
		err := t.beginThaw(s.first, s.last).run(ctx, t.unlock(now), use)
		t.mu.Lock()
		if t.ended {
			t.mu.Unlock()
			if e.isClosed() {
				return nil, refusal.Closed()
			}
			return nil, e.noTopic(t.name)
		}
		if err != nil {
			t.cold.melting--
			t.unlock(now)
			return nil, err
		}
	}
	t.cold.melting--
	return t, nil
}

// meltFor is melt for a call that is refused unless check says that it is possible, before and after: others go on
// while cold messages are read.
func (e *Engine) meltFor(ctx context.Context, t *topic, now moment, check func() error,
	use func(t *topic, es []*entry, now moment)) (*topic, error) {
	err := check()
	if err == nil {
		if t, err = e.melt(ctx, t, now, use); err != nil {
			return nil, err
		}
		err = check()
	}
	if err != nil {
		t.unlock(now)
		return nil, err
	}
	return t, nil
}
