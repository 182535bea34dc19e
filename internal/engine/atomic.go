package engine

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// publishAtomic stores all messages in one step over all their topics, or none.
func (e *Engine) publishAtomic(ctx context.Context, msgs []*driver.Message, rs []driver.Receipt,
	o driver.PublishOptions) error {
	now := e.now()
	entries, names, err := e.prepare(msgs, now)
	if err != nil {
		return refusal.All(rs, err)
	}
	ts, err := e.lockAllNew(ctx, names, msgs, entries, now)
	if err != nil {
		return refusal.All(rs, err)
	}
	if err := e.roomForAll(ts, msgs, entries); err != nil {
		e.unlockAll(ts, now)
		return refusal.All(rs, err)
	}
	for i, m := range msgs {
		rs[i] = ts[m.Topic].mustAccept(entries[i], now)
		ts[m.Topic].secure(e.synced(o))
	}
	return e.confirm(ctx, e.unlockAll(ts, now), rs, o)
}

// prepare copies messages and collects their topics, before any lock is taken.
func (e *Engine) prepare(msgs []*driver.Message, now moment) ([]*entry, []string, error) {
	entries, names := make([]*entry, len(msgs)), make([]string, len(msgs))
	for i, m := range msgs {
		if err := m.CheckPublish(e.o.Capabilities.MaxBody); err != nil {
			return nil, nil, err
		}
		entries[i], names[i] = e.newEntry(m, now), m.Topic
	}
	return entries, names, nil
}

// mustAccept stores a message whatever the bounds say, unless it is a duplicate.
func (t *topic) mustAccept(e *entry, now moment) driver.Receipt {
	if r, ok := t.duplicate(e); ok {
		return r
	}
	t.e.stored.Add(1)
	t.store(e, now)
	return driver.Receipt{ID: e.id, Ref: e.ref()}
}

// roomForAll says why the messages that are new exceed a bound.
func (e *Engine) roomForAll(ts map[string]*topic, msgs []*driver.Message, entries []*entry) error {
	type key struct{ topic, kind, id string }
	seen := make(map[key]bool) // duplicates within the batch
	count, bytes := make(map[*topic]int64), make(map[*topic]int64)
	var errs []error
	if e.o.Store != nil {
		errs = append(errs, e.o.Store.Room())
	}
	total := int64(0)
	for i, m := range msgs {
		t, en := ts[m.Topic], entries[i]
		if _, dup := t.duplicate(en); dup || seen[key{m.Topic, "id", m.ID}] || m.DedupID != "" &&
			seen[key{m.Topic, "dedup", m.DedupID}] {
			continue
		}
		seen[key{m.Topic, "id", m.ID}], seen[key{m.Topic, "dedup", m.DedupID}] = true, true
		count[t]++
		bytes[t] += en.size()
		total++
		if err := t.room(en, count[t], bytes[t]); err != nil {
			errs = append(errs, err)
			break
		}
	}
	if most := e.o.MaxMessages; e.stored.Load()+total > most {
		errs = append(errs, errAllFull(most))
	}
	return errors.Join(errs...)
}
