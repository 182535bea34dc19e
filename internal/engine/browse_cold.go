package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// lookCold continues where messages are cold. They stay so: what is shown is read beside the indexes. The topic is
// locked, and is not any more when it returns.
func (b *browser) lookCold(ctx context.Context, t *topic, now moment) error {
	if t.cold.loading != nil {
		t.awaitThaw(ctx, now)
		return ctx.Err()
	}
	w := t.beginThaw(max(b.at+1, b.cold.first), b.cold.last)
	w.most = b.room() // what is not shown is not read
	return w.load(t.unlock(now), func(now moment) error {
		g, ok := t.group(b.q.Group)
		if !ok {
			return t.noGroup(b.q.Group)
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
	v := view{Entry: driver.Entry{Message: f.message, Ref: driver.Ref{Pos: f.seq}, Group: g.name, State: driver.StateReady, Attempt: 1, Deliveries: 1}}
	if f.message == nil {
		v.Message = &driver.Message{Topic: g.t.name, Body: f.raw}
		v.Raw = f.raw
	}
	b.seen = append(b.seen, v)
}
