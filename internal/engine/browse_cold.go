package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// coldLook is how a page continues where messages are cold: they are read, or somebody else reads the store and is
// waited for. They stay cold: what is shown is read beside the indexes.
type coldLook struct {
	b       *browser
	read    *thaw
	loading <-chan struct{} // when read is nil
}

// beginCold prepares a look. The topic is locked, and the caller runs it once it has unlocked the topic.
func (b *browser) beginCold(t *topic) coldLook {
	if t.cold.loading != nil {
		return coldLook{loading: t.cold.loading}
	}
	w := t.beginThaw(max(b.at+1, b.cold.first), b.cold.last)
	w.most = b.room() // what is not shown is not read
	return coldLook{b: b, read: w}
}

// run reads, once everything before is readable, or waits.
func (l coldLook) run(ctx context.Context, before Round) error {
	if l.read == nil {
		awaitThaw(ctx, l.loading)
		return ctx.Err()
	}
	b, w := l.b, l.read
	return w.load(before, func(now moment) error {
		g, ok := w.t.group(b.q.Group)
		if !ok {
			return w.t.noGroup(b.q.Group)
		}
		last := b.cold.last
		if len(w.found) == w.most {
			last = w.found[w.most-1].seq
		}
		b.merge(w, g, last, now)
		return nil
	})
}

// merge shows what lies up to a place of the log, in memory and cold.
func (b *browser) merge(w *thaw, g *group, last uint64, now moment) {
	next := 0
	coldUpTo := func(at uint64) {
		for ; next < len(w.found) && w.found[next].seq <= at; next++ {
			b.showCold(&w.found[next], g)
		}
	}
	w.t.log.after(b.at, func(at uint64, e *entry) bool {
		if at > last || b.full() {
			return false
		}
		if coldUpTo(at); b.full() {
			return false
		}
		b.at = at
		b.page.Scanned++
		if v, ok := w.t.matching(e, g, b.q.State, now); ok {
			b.seen = append(b.seen, v)
		}
		return true
	})
	coldUpTo(last)
	if !b.full() {
		b.at = max(b.at, last)
	}
}

// showCold shows a cold message.
func (b *browser) showCold(f *found, g *group) {
	if b.full() {
		return
	}
	b.at = f.seq
	b.page.Scanned++
	if g.since >= f.head.fan {
		return
	}
	v := view{Entry: driver.Entry{Message: f.message, Ref: driver.Ref{Pos: f.seq}, Group: g.name, State: driver.StateReady,
		Attempt: 1, Deliveries: 1}}
	if f.message == nil {
		v.Message = &driver.Message{Topic: g.t.name, Body: f.raw}
		v.Raw = f.raw
	}
	b.seen = append(b.seen, v)
}
