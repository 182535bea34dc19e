package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// lookCold continues a page where messages are cold. They stay cold: what is shown is read beside the indexes. The
// topic is locked before, and not after.
func (b *browser) lookCold(ctx context.Context, t *topic, now moment) error {
	last := b.cold.last
	w := t.beginThaw(max(b.at+1, b.cold.first), last)
	w.most, b.cold = b.room(), nil // what is not shown is not read
	return w.load(ctx, t.unlock(now), func(now moment) error {
		g, err := t.mustGroup(b.q.Group)
		if err != nil {
			return err
		}
		if len(w.found) == w.most {
			last = w.found[w.most-1].seq
		}
		b.merge(w, g, last, now)
		return nil
	})
}

// merge shows what lies up to a place of the log, in memory and cold.
func (b *browser) merge(w *thaw, g *group, last uint64, now moment) {
	coldUpTo := func(at uint64) {
		for len(w.found) > 0 && w.found[0].seq <= at && !b.full() {
			b.see(w.found[0].seq, func() (view, bool) { return g.viewCold(&w.found[0]) })
			w.found = w.found[1:]
		}
	}
	w.t.log.after(b.at, func(at uint64, e *entry) bool {
		if coldUpTo(min(at, last)); at > last || b.full() {
			return false
		}
		b.see(at, func() (view, bool) { return w.t.matching(e, g, b.q.State, now) })
		return true
	})
	coldUpTo(last)
	if !b.full() {
		b.at = max(b.at, last)
	}
}

// viewCold shows a cold message, if the group sees it.
func (g *group) viewCold(f *found) (view, bool) {
	v := view{Entry: driver.Entry{Message: f.message, Ref: driver.Ref{Pos: f.seq}, Group: g.name, State: driver.StateReady,
		Attempt: 1, Deliveries: 1}}
	if f.message == nil {
		v.Message = &driver.Message{Topic: g.t.name, Body: f.raw}
		v.Raw = f.raw
	}
	return v, g.since < f.head.fan
}
