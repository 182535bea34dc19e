package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ferrymq/ferry/driver"
)

// browseAtATime is how many entries are looked at in one critical section.
const browseAtATime = 1024

// Browse returns a page of entries in one state, in the order of publishing; dead letters in the order of dying.
func (e *Engine) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(e.o.Capabilities)
	if err != nil {
		return driver.Page{}, err
	}
	at, err := placeOf(q)
	if err != nil {
		return driver.Page{}, err
	}
	b := &browser{q: q, at: at}
	for !b.full() {
		now := e.now()
		t, err := e.lockExisting(q.Topic, now)
		if err != nil {
			return driver.Page{}, err
		}
		more, err := b.look(t, now)
		if more && b.cold != nil && err == nil {
			err = b.lookCold(ctx, t, now)
		} else {
			t.unlock(now)
		}
		if err == nil {
			err = b.take(t)
		}
		if err != nil {
			return driver.Page{}, err
		}
		if !more {
			return b.page, nil
		}
	}
	b.page.Next = q.Continue(e.o.Capabilities, strconv.FormatUint(b.at, 10))
	return b.page, nil
}

// placeOf returns the place where a query goes on.
func placeOf(q driver.Query) (at uint64, err error) {
	if q.Cursor == "" {
		return 0, nil
	}
	if at, err = strconv.ParseUint(q.Cursor, 10, 64); err != nil {
		return 0, driver.NewError(driver.ErrInvalid, fmt.Sprintf("cursor %.40q is not one of this driver", q.Cursor),
			"use the cursor that an earlier page ended with, or none", nil)
	}
	return at, nil
}

// browser collects a page in several short looks.
type browser struct {
	q    driver.Query
	at   uint64 // the place that was looked at last
	page driver.Page
	seen []view   // in this look
	cold *stretch // comes next
}

// take completes what was seen in one look, without the lock.
func (b *browser) take(t *topic) error {
	entries, err := t.complete(b.seen)
	b.page.Entries = append(b.page.Entries, entries...)
	b.seen = nil
	return err
}

func (b *browser) full() bool { return b.room() <= 0 }

// room is how many more entries may be looked at now.
func (b *browser) room() int {
	return min(b.q.Limit-len(b.page.Entries)-len(b.seen), b.q.MaxScan-b.page.Scanned, browseAtATime)
}

// look continues for a while, and reports whether there is more.
func (b *browser) look(t *topic, now moment) (more bool, err error) {
	var g *group
	if b.q.Group != "" {
		if g, err = t.mustGroup(b.q.Group); err != nil {
			return false, err
		}
	}
	budget := browseAtATime
	step := func(at uint64, look func() (view, bool)) bool {
		if b.full() || budget == 0 {
			more = true
			return false
		}
		budget--
		b.see(at, look)
		return true
	}
	if b.q.State == driver.StateDead {
		g.graves.after(b.at, func(at uint64, it *item) bool {
			return step(at, func() (view, bool) { return it.view(now), true })
		})
		return more, nil
	}
	log, upTo := &t.log, uint64(math.MaxUint64)
	if b.q.State == driver.StateInvalid {
		log = &t.invalid
	}
	next := b.nextCold(t)
	if next != nil {
		upTo = max(next.first, b.at+1)
	}
	log.after(b.at, func(at uint64, e *entry) bool {
		return at < upTo && step(at, func() (view, bool) { return t.matching(e, g, b.q.State, now) })
	})
	if !more && next != nil {
		if more = true; !b.full() {
			b.cold = next
		}
	}
	return more, nil
}

// see looks at the next entry, and keeps it if it is asked for.
func (b *browser) see(at uint64, look func() (view, bool)) {
	b.at = at
	b.page.Scanned++
	if v, ok := look(); ok {
		b.seen = append(b.seen, v)
	}
}

// nextCold returns the stretch that comes next, if it contains what is asked for.
func (b *browser) nextCold(t *topic) *stretch {
	if b.q.State != driver.StateReady {
		return nil
	}
	vs := t.cold.stretches.vs
	i, _ := slices.BinarySearchFunc(vs, b.at+1, func(s stretch, at uint64) int { return cmp.Compare(s.last, at) })
	if i == len(vs) {
		return nil
	}
	s := vs[i]
	return &s
}

// matching returns the view of a message if it is in this state.
func (t *topic) matching(e *entry, g *group, state driver.State, now moment) (view, bool) {
	if e.state != fanned {
		if entryStates[e.state] != state {
			return view{}, false
		}
		return t.view(e, now), true
	}
	if g == nil {
		return view{}, false
	}
	it := e.item(g)
	if it == nil || itemStates[it.state] != state {
		return view{}, false
	}
	return it.view(now), true
}
