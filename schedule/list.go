package schedule

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Query selects schedules.
type Query struct {
	// Prefix of their names.
	Prefix string
	// Cursor is where to go on: Page.Next. Empty: from the begin.
	Cursor string
	// Limit is the most returned. Defaults to 100, and is 1000 at most.
	Limit int
}

// Page is some of the schedules that a Query selects, in order of their names.
type Page struct {
	Schedules []Status
	// Next continues after this page; empty at the end.
	Next string
}

// Get returns a schedule and how far it is. ErrNotFound if there is none of that name.
func (s *Scheduler) Get(ctx context.Context, name string) (Status, error) {
	if err := checkName(name); err != nil {
		return Status{}, err
	}
	all, err := s.read(ctx, name)
	switch {
	case err != nil:
		return Status{}, err
	case all[0].stored == 0:
		return Status{}, unknown(name)
	}
	return all[0].status(), all[0].bad
}

// List returns a page of the schedules.
func (s *Scheduler) List(ctx context.Context, q Query) (Page, error) {
	p, err := s.kv.List(ctx, driver.KVQuery{Bucket: bucketSchedules, Prefix: q.Prefix, After: q.Cursor, Limit: q.Limit})
	if err != nil {
		return Page{}, err
	}
	all, err := s.withProgress(ctx, p.Values)
	if err != nil {
		return Page{}, err
	}
	page := Page{Next: p.Next}
	for _, f := range all {
		page.Schedules = append(page.Schedules, f.status())
	}
	return page, nil
}

// status returns what people are told. Of a definition that cannot be read that is the problem alone.
func (f found) status() Status {
	d := f.def
	if d == nil {
		return Status{Schedule: Schedule{Name: f.name}, Revision: f.stored, Problem: f.bad.Error()}
	}
	st := Status{Schedule: d.Schedule, State: Active, Revision: d.revision, Edited: d.written, Next: f.at.next(d),
		Last: instant(f.at.Last), Problem: f.at.Problem}
	switch {
	case d.Paused:
		st.State = Paused
	case st.Next.IsZero():
		st.State = Ended
	}
	return st
}
