package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// lookEvery is how often somebody looks whether ticks have vanished, and how long one must be overdue for that.
const lookEvery = time.Minute

// keepLooking looks for overdue schedules until ctx ends.
func (s *Scheduler) keepLooking(ctx context.Context) {
	for sleep(ctx, lookEvery) {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "overdue schedules cannot be looked for, and are the next time", "error", err)
		}
	}
}

// look goes through all schedules, unless another instance did within the minute. A tick may have vanished: with a
// fail-over that lost it, by a purge of the topic, with whoever edited the schedule and was killed before it laid the
// first.
func (s *Scheduler) look(ctx context.Context) error {
	turn, err := s.apply(ctx, bucketLook,
		driver.Write{Name: "turn", If: driver.Absent, TTL: lookEvery * 9 / 10, Quiet: true})
	if errors.Is(err, driver.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	q := driver.KVQuery{Bucket: bucketSchedules, Limit: driver.MaxLimit}
	for {
		p, err := s.kv.List(ctx, q)
		if err != nil {
			return err
		}
		all, err := s.withProgress(ctx, p.Values)
		if err != nil {
			return err
		}
		for _, f := range all {
			if err := s.mend(ctx, f, turn.Written); err != nil {
				return err
			}
		}
		if q.After = p.Next; p.Next == "" {
			return nil
		}
	}
}

// mend looks after a schedule that is overdue. Its tick is laid again under the id that it had, if it has vanished.
func (s *Scheduler) mend(ctx context.Context, f found, now time.Time) error {
	d := f.def
	if d == nil {
		return nil
	}
	next := f.at.next(d)
	begun := f.at.Revision >= d.revision
	switch {
	case begun && (next.IsZero() || now.Sub(d.due(next)) < lookEvery):
		return nil
	case !begun && now.Sub(d.written) < lookEvery: // whoever edits it may be about to begin it
		return nil
	}
	return s.restore(ctx, f, now)
}

// restore lays the tick of a schedule if none of it lies there, and notes which one does.
func (s *Scheduler) restore(ctx context.Context, f found, now time.Time) error {
	d, next := f.def, f.at.next(f.def)
	at, err := s.lying(ctx, d, d.likely(next, now))
	if err != nil {
		return err
	}
	if at.IsZero() && !next.IsZero() {
		s.log.WarnContext(ctx, "a tick was not there, and is laid again", "schedule", d.Name, "tick", next)
		if err := s.lay(ctx, d, next); err != nil {
			return err
		}
		at = next
	}
	s.note(ctx, progress{Revision: d.revision, Next: millis(at), Last: f.at.Last, Problem: f.at.Problem,
		stored: f.at.stored}.write(d.Name))
	return nil
}

// likely returns the ticks that may lie in the broker when the one that was noted is next: that one and the one after
// it; or, if notes were lost, those of just now and the one to come.
func (d *definition) likely(next, now time.Time) []time.Time {
	if next.IsZero() {
		return nil
	}
	ticks := []time.Time{next, d.after(next)}
	for t := d.after(now.Add(-d.Jitter - Late)); !t.IsZero(); t = d.after(t) {
		ticks = append(ticks, t)
		if t.After(now) {
			break
		}
	}
	return ticks
}

// lying returns the first of some ticks whose message lies in the broker; zero if none does.
func (s *Scheduler) lying(ctx context.Context, d *definition, ticks []time.Time) (time.Time, error) {
	for _, at := range ticks {
		if at.IsZero() {
			continue
		}
		entries, err := s.driver.Get(ctx, driver.Target{Topic: Topic, ID: tickID(d.Name, d.revision, at)})
		if err != nil && !errors.Is(err, driver.ErrNotFound) {
			return time.Time{}, err
		}
		for _, e := range entries {
			if e.State != driver.StateDone {
				return at, nil
			}
		}
	}
	return time.Time{}, nil
}
