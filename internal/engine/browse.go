package engine

import (
	"context"
	"fmt"
	"iter"
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
	b := &browser{q: q}
	if q.Cursor != "" {
		if b.at, err = strconv.ParseUint(q.Cursor, 10, 64); err != nil {
			return driver.Page{}, driver.NewError(driver.ErrInvalid, fmt.Sprintf("cursor %.40q is not one of this driver",
				q.Cursor), "use the cursor that an earlier page ended with, or none", nil)
		}
	}
	for !b.full() {
		now := e.now()
		t, err := e.lockExisting(q.Topic, now)
		if err != nil {
			return driver.Page{}, err
		}
		more, err := b.look(t, now)
		r := t.unlock(now)
		if err == nil {
			err = b.take(ctx, t, r)
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

// browser collects a page in several short looks.
type browser struct {
	q    driver.Query
	at   uint64 // the place that was looked at last
	page driver.Page
	seen []view // in this look
}

// take completes what was seen in one look, without the lock.
func (b *browser) take(ctx context.Context, t *topic, r Round) error {
	entries, err := t.complete(ctx, r, b.seen)
	b.page.Entries = append(b.page.Entries, entries...)
	b.seen = nil
	return err
}

// full reports whether no more entries may be looked at.
func (b *browser) full() bool {
	return len(b.page.Entries)+len(b.seen) >= b.q.Limit || b.page.Scanned >= b.q.MaxScan
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
	for at, v := range b.views(t, g, now) {
		if b.full() || budget == 0 {
			return true, nil
		}
		budget--
		b.at = at
		b.page.Scanned++
		if v.Ref.Pos > 0 {
			b.seen = append(b.seen, v)
		}
	}
	return false, nil
}

// views are the entries that come next, each as it is shown; without a Ref if it is not asked for.
func (b *browser) views(t *topic, g *group, now moment) iter.Seq2[uint64, view] {
	return func(yield func(at uint64, v view) bool) {
		if b.q.State == driver.StateDead {
			for at, it := range g.graves.after(b.at) {
				if !yield(at, it.view(now)) {
					return
				}
			}
			return
		}
		entries := t.log.after(b.at)
		switch b.q.State {
		case driver.StateInvalid:
			entries = t.invalid.after(b.at)
		case driver.StateReady:
			entries = t.entries(b.at)
		}
		for at, e := range entries {
			if !yield(at, t.matching(at, e, g, b.q.State, now)) {
				return
			}
		}
	}
}

// matching returns the view of a message if it is in this state. What is not in memory is taken to be.
func (t *topic) matching(at uint64, e *entry, g *group, state driver.State, now moment) view {
	switch {
	case e == nil:
		return coldView(at, g)
	case e.state != fanned && entryStates[e.state] == state:
		return t.view(e, now)
	case e.state != fanned || g == nil:
		return view{}
	}
	if it := e.item(g); it != nil && itemStates[it.state] == state {
		return it.view(now)
	}
	return view{}
}
