package engine

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/internal/container"
)

// thaw brings cold messages back into memory. The store is read without the lock of the topic, by one caller at a time:
// all others wait for that one, and look again.
// What is in the log but not in memory when it begins is cold; that can change only by thawing it.
type thaw struct {
	t           *topic
	others      <-chan struct{} // closed when another one is over; nil: there is none
	first, last uint64
	hot         []uint64 // between first and last, in memory when it began
	found       []found
	bodies      arena

	use  func(t *topic, es []*entry, now moment) // gets what was read before anybody else; nil: nobody does
	done func()                                  // is called with the topic locked, when all of it is in memory
}

// beginThaw prepares reading what is cold between two places of the log. The topic is locked, and the caller runs it
// once it has unlocked the topic.
func (t *topic) beginThaw(first, last uint64) *thaw {
	if t.cold.loading != nil {
		return &thaw{t: t, others: t.cold.loading}
	}
	t.cold.loading, t.cold.loaded = make(chan struct{}), last
	w := &thaw{t: t, first: first, last: last}
	for at := range t.log.after(first - 1) {
		if at > last {
			break
		}
		w.hot = append(w.hot, at)
	}
	return w
}

// beginNext prepares reading the first stretch of which the group sees something. There is one.
func (g *group) beginNext() *thaw {
	s := g.nextCold()
	return g.t.beginThaw(s.first, s.last)
}

// run reads the messages once everything before is readable, and puts them where they belong; or only waits, for
// whoever reads the store. If the topic has ended meanwhile it does nothing: who locks it again is told why. The
// context ends only a wait for others.
func (w *thaw) run(ctx context.Context, before Round) error {
	t := w.t
	if w.others != nil {
		select {
		case <-w.others:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	err := w.read(before)
	t.mu.Lock()
	close(t.cold.loading)
	t.cold.loading = nil
	if t.ended {
		t.mu.Unlock()
		return nil
	}
	now := t.e.now()
	if err == nil {
		err = w.insert(now)
	}
	t.unlock(now)
	return err
}

func (w *thaw) read(before Round) error {
	e, number := w.t.e, w.t.journal.number
	if err := e.outcome(context.Background(), before, false); err != nil {
		return err
	}
	from, to := appendNumberKey(nil, number, kindMessage, w.first), appendNumberKey(nil, number, kindMessage, w.last+1)
	if err := e.o.Store.Scan(from, to, w.readRecord); err != nil {
		return w.t.errUnreadable(err)
	}
	return nil
}

func (w *thaw) readRecord(key, value []byte) error {
	seq, state, ok := numberOf(key)
	if !ok {
		return fmt.Errorf("key %x is not one of this program", key)
	}
	for len(w.hot) > 0 && w.hot[0] < seq {
		w.hot = w.hot[1:]
	}
	if len(w.hot) > 0 && w.hot[0] == seq {
		return nil
	}
	if state {
		return fmt.Errorf("message 0-%d has a state that is not known", seq)
	}
	f := readFound(w.t.name, seq, value)
	if f.message != nil {
		f.message.Body = w.bodies.keep(f.message.Body, w.t.stretchSize()-len(w.found))
	}
	w.found = append(w.found, f)
	return nil
}

// insert puts what was read where it belongs.
func (w *thaw) insert(now moment) error {
	t := w.t
	if i := t.cold.find(w.first); i >= 0 {
		s := t.cold.stretches[i]
		if whole := w.first == s.first && w.last == s.last; whole && len(w.found) != s.count {
			return t.errUnreadable(fmt.Errorf("%d messages lie between 0-%d and 0-%d, but %d should", len(w.found), s.first,
				s.last, s.count))
		}
		w.insertInto(i, now)
	}
	if w.done != nil {
		w.done()
	}
	return nil
}

// insertInto moves what was read out of a stretch.
func (w *thaw) insertInto(i int, now moment) {
	t, s := w.t, &w.t.cold.stretches[i]
	es, bytes := make([]*entry, len(w.found)), int64(0)
	for n := range w.found {
		es[n] = t.thawed(&w.found[n], now)
		bytes += es[n].size()
	}
	if len(es) == s.count {
		t.stats.Bytes += bytes - s.bytes // they differ if something cannot be decoded
		bytes = s.bytes
	}
	if len(es) == 0 {
		return
	}
	t.takeCold(i, len(es), bytes)
	for _, g := range t.groups {
		for _, e := range es {
			if g.since < e.fan {
				g.cold--
			}
		}
	}
	for _, e := range es {
		t.arrive(e, now)
	}
	for _, g := range t.groups {
		g.release()
	}
	if w.use != nil {
		w.use(t, es, now)
	}
}

// thawed makes the entry of a message that was read. Its content stays if there is room.
func (t *topic) thawed(f *found, now moment) *entry {
	e := newPrompt()
	e.seq, e.dueAt, e.flags = f.seq, container.Nowhere, saved
	e.state, e.fan, e.due = fanned, f.head.fan, now.read(f.head.due)
	m := f.message
	if m == nil {
		e.more().raw = f.raw
		return e
	}
	t.cold.ids.remove(t.cold.ids.hash(m.ID), f.seq)
	t.index(e, f)
	size := int64(f.size)
	if t.e.cached.Add(size) > t.e.o.CacheBytes {
		t.e.cached.Add(-size)
		return e
	}
	e.contentType = t.e.contentType.Load()
	e.recall(m, now)
	e.flags |= cached
	return e
}

// arrive makes a message that was cold a ready one of each group that sees it. It is counted already.
func (t *topic) arrive(e *entry, now moment) {
	t.log.put(e.seq, e)
	for _, g := range t.groups {
		if g.since >= e.fan {
			continue
		}
		it := e.newItem(g)
		it.state, it.at = ready, g.ready.add(e.due)
		e.live++
		g.countNormal(it, 1)
		g.place(it)
	}
	if e.live == 0 { // nobody sees it: cannot be, but must not stay for ever
		e.live = 1
		t.lose(e)
		t.remove(e, now)
	}
}
