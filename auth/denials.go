package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	denialsFor  = time.Minute // for which denied calls are counted before they are recorded again
	mostDenials = 1000        // kinds of them that are counted apart
)

// denials count denied calls, so that somebody who is refused in a loop does not push everything else out of the chain.
type denials struct {
	mu   sync.Mutex
	seen map[denial]*denialCount
}

type denial struct{ who, what string }

type denialCount struct {
	last  Action
	since time.Time
	more  int64 // after the one that was recorded
}

// first counts a denied call, and reports whether it has to be recorded now.
func (d *denials) first(a Action, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := denial{a.Who, a.What}
	if d.seen == nil {
		d.seen = map[denial]*denialCount{}
	}
	if d.seen[key] == nil && len(d.seen) >= mostDenials {
		key = denial{what: "many"}
	}
	if c := d.seen[key]; c != nil {
		c.last, c.more = a, c.more+1
		return false
	}
	d.seen[key] = &denialCount{since: now}
	return true
}

// due takes out what was counted for long enough.
func (d *denials) due(before time.Time) []Action {
	d.mu.Lock()
	defer d.mu.Unlock()
	var due []Action
	for key, c := range d.seen {
		if c.since.After(before) {
			continue
		}
		delete(d.seen, key)
		if c.more > 0 {
			c.last.Count = c.more
			due = append(due, c.last)
		}
	}
	return due
}

// Flush records the denied calls that were counted for a minute; with all those that are counted at all. A server calls
// it every minute, and with all when it stops.
func (a *Actions) Flush(ctx context.Context, all bool) error {
	before := time.Now()
	if !all {
		before = before.Add(-denialsFor)
	}
	var errs []error
	for _, action := range a.denied.due(before) {
		errs = append(errs, a.append(ctx, action))
	}
	return errors.Join(errs...)
}
