package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// lockReaching is lockExisting for a call that names a message: if that is cold, it is in memory afterwards.
func (e *Engine) lockReaching(ctx context.Context, target driver.Target, now moment) (*topic, error) {
	var tried map[uint64]bool
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
		if err := t.beginReach(seq, id, &tried).run(ctx, t.unlock(now)); err != nil {
			return nil, err
		}
	}
}

// coldTarget returns the place of a cold message that a target may name, or 0.
func (t *topic) coldTarget(target driver.Target, tried map[uint64]bool) uint64 {
	if target.Ref.IsZero() {
		return t.coldID(target.ID, tried)
	}
	if r := target.Ref; r.Partition == 0 && r.Sub == 0 && t.log.get(r.Pos) == nil && t.cold.find(r.Pos) >= 0 &&
		!tried[r.Pos] {
		return r.Pos
	}
	return 0
}

// coldID returns the place of a cold message that may have an id, or 0.
func (t *topic) coldID(id string, tried map[uint64]bool) (at uint64) {
	if _, ok := t.ids.Get(id); ok || id == "" {
		return 0
	}
	t.cold.ids.find(t.cold.ids.hash(id), func(seq uint64) {
		if !tried[seq] {
			at = seq
		}
	})
	return at
}

// reach is how one cold message comes into memory: it is read, or somebody else reads the store and is waited for.
type reach struct {
	read    *thaw
	loading <-chan struct{} // when read is nil
}

// beginReach prepares reading one cold message, if it is there and, unless id is empty, has that id. The topic is
// locked, and the caller runs it once it has unlocked the topic.
func (t *topic) beginReach(seq uint64, id string, tried *map[uint64]bool) reach {
	if t.cold.loading != nil {
		return reach{loading: t.cold.loading}
	}
	if *tried == nil {
		*tried = map[uint64]bool{}
	}
	(*tried)[seq] = true
	w := t.beginThaw(seq, seq)
	w.id = id
	return reach{read: w}
}

// run reads, once everything before is readable, or waits.
func (r reach) run(ctx context.Context, before Round) error {
	if r.read == nil {
		awaitThaw(ctx, r.loading)
		return ctx.Err()
	}
	return r.read.run(before, nil)
}

// lockNew is lock for new messages: what is cold and has the id of one of them is in memory afterwards, so that
// duplicates are found.
func (e *Engine) lockNew(ctx context.Context, topic string, entries []*entry, now moment) (*topic, error) {
	var tried map[uint64]bool
	for {
		t, err := e.lock(topic, now)
		if err != nil || t.cold.count == 0 {
			return t, err
		}
		seq, id := t.coldDuplicate(entries, tried)
		if seq == 0 {
			return t, nil
		}
		if err := t.beginReach(seq, id, &tried).run(ctx, t.unlock(now)); err != nil {
			return nil, notApplied(err)
		}
	}
}

// coldDuplicate returns the place of a cold message that may have the id of a new one, and that id.
func (t *topic) coldDuplicate(entries []*entry, tried map[uint64]bool) (seq uint64, id string) {
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
	var tried map[*topic]map[uint64]bool
again:
	for {
		ts, err := e.lockAll(names, now)
		if err != nil {
			return nil, err
		}
		for i, m := range msgs {
			t := ts[m.Topic]
			if t.cold.count == 0 {
				continue
			}
			seq := t.coldID(entries[i].id, tried[t])
			if seq == 0 {
				continue
			}
			if tried == nil {
				tried = map[*topic]map[uint64]bool{}
			}
			own := tried[t]
			reach := t.beginReach(seq, entries[i].id, &own)
			tried[t] = own
			if err := reach.run(ctx, e.unlockAll(ts, now)); err != nil {
				return nil, notApplied(err)
			}
			continue again
		}
		return ts, nil
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
		var err error
		if t.cold.loading != nil {
			loading := t.cold.loading
			t.unlock(now)
			awaitThaw(ctx, loading)
			err = ctx.Err()
		} else {
			s := t.cold.stretches.head()
			w := t.beginThaw(s.first, s.last)
			err = w.run(t.unlock(now), use)
		}
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
