package engine

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// publishChunk bounds how many messages one critical section stores.
const publishChunk = 128

// Publish stores messages. The outcome is always known: nothing here can be half done.
func (e *Engine) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt,
	error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := e.refuse(ctx, o); err != nil {
		return rs, refusal.All(rs, err)
	}
	if o.Atomic && len(msgs) > 1 {
		return rs, e.publishAtomic(ctx, msgs, rs, o)
	}
	var one [1]*entry
	entries := one[:]
	if len(msgs) > 1 {
		var many [publishChunk]*entry
		entries = many[:]
	}
	var last Round // of a store that keeps the order of rounds: what is safe in it is safe in all before
	for i := 0; i < len(msgs); {
		n := sameTopic(msgs[i:])
		if r := e.publishEach(ctx, msgs[i:i+n], entries[:n], rs[i:i+n], o); r != nil { // a step that stored nothing has none
			last = r
		}
		i += n
	}
	return rs, e.confirm(ctx, last, rs, o)
}

// synced reports whether a publish with these options waits until it survives a power loss.
func (e *Engine) synced(o driver.PublishOptions) bool {
	level := o.Level
	if level == 0 {
		level = e.o.Capabilities.Durability
	}
	return level == driver.Synced
}

// confirm waits until what was stored is as safe as promised, or says in every receipt that it may not be. It returns
// the errors of receipts.
func (e *Engine) confirm(ctx context.Context, r Round, rs []driver.Receipt, o driver.PublishOptions) error {
	if err := e.outcome(ctx, r, e.synced(o)); err != nil {
		for i := range rs {
			if rs[i].Err == nil {
				rs[i] = driver.Receipt{ID: rs[i].ID, Err: err}
			}
		}
	}
	return refusal.Of(rs)
}

// refuse says why nothing can be published with these options.
func (e *Engine) refuse(ctx context.Context, o driver.PublishOptions) error {
	if err := ctx.Err(); err != nil {
		return driver.NewError(driver.ErrNotApplied, "the context ended before the publish began", "publish again", err)
	}
	if c := &e.o.Capabilities; !c.Gives(o.Level) {
		return c.Refuse(o.Level)
	}
	return nil
}

// secure notes that somebody will wait for the step to survive a power loss.
func (t *topic) secure(synced bool) {
	if t.journal != nil && synced {
		t.journal.synced = true
	}
}

// sameTopic returns how many of the first messages have one topic, up to a chunk. A nil one is alone.
func sameTopic(msgs []*driver.Message) int {
	n := 1
	for n < len(msgs) && n < publishChunk && msgs[0] != nil && msgs[n] != nil && msgs[n].Topic == msgs[0].Topic {
		n++
	}
	return n
}

// publishEach stores messages of one topic, each on its own, and returns the round to wait for. Entries is scratch.
func (e *Engine) publishEach(ctx context.Context, msgs []*driver.Message, entries []*entry, rs []driver.Receipt,
	o driver.PublishOptions) Round {
	now, valid := e.now(), 0
	for i, m := range msgs {
		if rs[i].Err = m.CheckPublish(e.o.Capabilities.MaxBody); rs[i].Err != nil {
			entries[i] = nil
			continue
		}
		entries[i] = e.newEntry(m, now)
		valid++
	}
	if valid == 0 { // no topic is made for what is refused
		return nil
	}
	t, err := e.lockNew(ctx, msgs[0].Topic, entries, now)
	if err != nil {
		_ = refusal.All(rs, err)
		return nil
	}
	for i := range msgs {
		if entries[i] != nil {
			rs[i] = t.accept(entries[i], now)
		}
	}
	t.secure(e.synced(o))
	return t.unlock(now)
}

// accept stores one message unless it is a duplicate or there is no room.
func (t *topic) accept(e *entry, now moment) driver.Receipt {
	if r, ok := t.duplicate(e); ok {
		return r
	}
	if err := t.room(e, 1, e.size()); err != nil {
		return driver.Receipt{ID: e.id, Err: err}
	}
	if s := t.e.o.Store; s != nil {
		if err := s.Room(); err != nil {
			return driver.Receipt{ID: e.id, Err: err}
		}
	}
	if most := t.e.o.MaxMessages; t.e.stored.Add(1) > most {
		t.e.stored.Add(-1)
		return driver.Receipt{ID: e.id, Err: errAllFull(most)}
	}
	t.store(e, now)
	return driver.Receipt{ID: e.id, Ref: e.ref()}
}

// room says why n more messages with so many bytes exceed the bounds of the topic.
func (t *topic) room(e *entry, n, bytes int64) error {
	c := &t.config
	switch {
	case c.MaxMessages > 0 && t.stats.Messages+n > c.MaxMessages:
		return t.errFull(fmt.Sprintf("%d messages", c.MaxMessages))
	case c.MaxBytes > 0 && t.stats.Bytes+bytes > c.MaxBytes:
		return t.errFull(fmt.Sprintf("%d bytes", c.MaxBytes))
	case e.extra != nil && e.extra.dedupID != "" && t.dedupIDs.ids.Len() >= t.e.o.MaxDedup:
		return t.errFull(fmt.Sprintf("%d remembered dedup ids", t.e.o.MaxDedup))
	}
	return nil
}

func (t *topic) errFull(bound string) error {
	return driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has reached its bound of %s", t.name, bound),
		"publish again when consumers have caught up, or raise the bound", nil)
}

func errAllFull(most int64) error {
	return driver.NewError(driver.ErrFull, fmt.Sprintf("the broker holds its most, %d messages", most),
		"publish again when consumers have caught up, remove dead letters, or raise the bounds of the topic: 'ferry topic "+
			"alter'", nil)
}

// store puts a new message into the topic: to the groups if it is due, else aside. The engine has counted it already.
func (t *topic) store(e *entry, now moment) {
	if len(t.groups) == 0 {
		t.addGroup(driver.DefaultGroup, driver.Strict, false) // so that nothing is lost before the first consumer
	}
	t.seq++
	e.seq = t.seq
	toCold := e.due <= now.tick && t.goesCold(e)
	if !toCold {
		t.log.put(e.seq, e)
	}
	if e.id != "" {
		t.ids.Put(e)
		e.flags |= indexed
	}
	t.noteDedupID(e, now)
	t.stats.Published++
	t.gain(e)
	switch {
	case e.due == never:
		t.touch(e)
		e.state = held
		t.stats.Held++
	case e.due > now.tick:
		t.delay(e)
	case toCold:
		t.fanCold(e, now)
	default:
		t.fan(e, now)
	}
}
