package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Put declares a schedule: it makes it, or changes the one of that name at once. Declaring what is there already
// changes nothing, so that every instance of a program may do it when it starts. A schedule whose Spec and Zone stay
// the same keeps its next tick.
func (s *Scheduler) Put(ctx context.Context, sc Schedule) error {
	sc.Until = sc.Until.Truncate(time.Millisecond)
	if err := sc.check(s.caps); err != nil {
		return err
	}
	if err := s.authorize(ctx, fired(&sc, 0, time.Time{})); err != nil {
		return err
	}
	return s.edit(ctx, sc.Name, func(*definition) (*Schedule, error) { return &sc, nil }, sc.inTime)
}

// Pause stops a schedule at once, until Resume. Pausing a paused one changes nothing.
func (s *Scheduler) Pause(ctx context.Context, name string) error { return s.pause(ctx, name, true) }

// Resume lets a paused schedule tick again: at the first tick after now.
func (s *Scheduler) Resume(ctx context.Context, name string) error {
	return s.pause(ctx, name, false)
}

func (s *Scheduler) pause(ctx context.Context, name string, paused bool) error {
	if err := checkName(name); err != nil {
		return err
	}
	return s.edit(ctx, name, func(old *definition) (*Schedule, error) {
		if old == nil {
			return nil, unknown(name)
		}
		changed := old.Schedule
		changed.Paused = paused
		return &changed, nil
	}, func(time.Time) error { return nil })
}

// Delete removes a schedule at once. ErrNotFound if there is none of that name.
func (s *Scheduler) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for range rounds {
		all, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		old := all[0]
		if old.stored == 0 {
			return unknown(name)
		}
		_, err = s.apply(ctx, bucketSchedules, driver.Write{Name: name, Delete: true, If: driver.Condition(old.stored)})
		if errors.Is(err, driver.ErrConflict) {
			continue
		}
		if err == nil && old.at.stored != 0 {
			s.note(ctx, driver.Write{Name: name, Delete: true, If: driver.Condition(old.at.stored), Quiet: true})
		}
		if err == nil {
			s.clear(ctx, old)
		}
		return err
	}
	return contended(name)
}

// rounds is how often an edit begins anew because another came before.
const rounds = 50

func contended(name string) error {
	return driver.NewError(ferry.ErrConflict, fmt.Sprintf("schedule %s is changed by others all the time", name),
		"do instances declare different schedules of one name?", nil)
}

func unknown(name string) error {
	return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no schedule %s", name),
		"'ferry schedule ls' lists those that there are", nil)
}

// edit writes a definition over the one that change was shown, if it differs, and lays its first tick.
func (s *Scheduler) edit(ctx context.Context, name string, change func(old *definition) (*Schedule, error),
	inTime func(now time.Time) error) error {
	for range rounds {
		all, err := s.read(ctx, name)
		if err != nil {
			return err
		}
		old := all[0]
		changed, err := change(old.def)
		if err != nil {
			return err
		}
		if old.def != nil && same(&old.def.Schedule, changed) {
			return s.begun(ctx, old)
		}
		now, err := s.clock(ctx)
		if err == nil {
			err = inTime(now)
		}
		if err != nil {
			return err
		}
		d, err := s.store(ctx, old, changed, now)
		if errors.Is(err, driver.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		s.clear(ctx, old)
		return s.begin(ctx, found{name: name, def: d, at: old.at})
	}
	return contended(name)
}

// store writes a definition over what was found, and returns it with the revision and the time that it got.
func (s *Scheduler) store(ctx context.Context, old found, sc *Schedule, now time.Time) (*definition, error) {
	first, err := s.carried(ctx, old, sc, now)
	if err != nil {
		return nil, err
	}
	data, err := encode(sc, first)
	if err != nil {
		return nil, err
	}
	w := driver.Write{Name: sc.Name, Data: data, If: driver.Absent}
	if old.stored != 0 {
		w.If = driver.Condition(old.stored)
	}
	v, err := s.apply(ctx, bucketSchedules, w)
	if err != nil {
		return nil, err
	}
	v.Data = data
	return decode(v)
}

// apply makes one write, also when the answer to it is lost.
func (s *Scheduler) apply(ctx context.Context, bucket string, w driver.Write) (v driver.Value, err error) {
	w.Request = rand.Text()
	err = repeated(ctx, func() error {
		rs := s.kv.Apply(ctx, bucket, driver.KVOptions{}, w)
		v = rs[0].Value
		return rs[0].Err
	})
	v.Name = w.Name
	return v, err
}

// carried returns the tick that a schedule goes on with whose times stay the same: the one that is to come, or that is
// due and not taken yet.
func (s *Scheduler) carried(ctx context.Context, old found, sc *Schedule, now time.Time) (time.Time, error) {
	d := old.def
	if d == nil || d.Paused || sc.Paused || d.Spec != sc.Spec || d.Zone != sc.Zone {
		return time.Time{}, nil
	}
	at, err := s.lying(ctx, d, d.likely(old.at.next(d), now))
	if err != nil || !sc.Until.IsZero() && at.After(sc.Until) {
		return time.Time{}, err
	}
	return at, nil
}

// begin lays the first tick of a new revision.
func (s *Scheduler) begin(ctx context.Context, f found) error {
	d := f.def
	next := d.start()
	if !next.IsZero() {
		if err := s.lay(ctx, d, next); err != nil {
			return err
		}
	}
	s.note(ctx, progress{Revision: d.revision, Next: millis(next), Last: f.at.Last, stored: f.at.stored}.write(d.Name))
	return nil
}

// begun makes sure that a revision has begun: whoever wrote it may have been killed before it laid the first tick.
func (s *Scheduler) begun(ctx context.Context, f found) error {
	if f.at.Revision >= f.def.revision {
		return nil
	}
	now, err := s.clock(ctx)
	if err != nil {
		return err
	}
	return s.restore(ctx, f, now)
}

// clear deletes the tick that lies there of a revision that is over. One that stays is forgotten when it is due.
func (s *Scheduler) clear(ctx context.Context, old found) {
	if old.def == nil {
		return
	}
	if next := old.at.next(old.def); !next.IsZero() {
		s.driver.Delete(ctx, []driver.Target{{Topic: Topic, ID: tickID(old.name, old.def.revision, next)}})
	}
}

// clock returns the broker's time, which alone decides what is past.
func (s *Scheduler) clock(ctx context.Context) (time.Time, error) {
	v, err := s.apply(ctx, bucketLook, driver.Write{Name: "clock", TTL: driver.MinValueTTL, Quiet: true})
	return v.Written, err
}

// inTime says why a schedule makes no sense from now on, or nil.
func (s *Schedule) inTime(now time.Time) error {
	if !s.Until.IsZero() && !s.Until.After(now) {
		return s.invalid(fmt.Sprintf("ends at %s, which is past", s.Until.UTC().Format(time.RFC3339)),
			"give a later end, or none")
	}
	ticks, err := Next(s.Spec, s.Zone, now, 10)
	switch {
	case err != nil:
		return err
	case len(ticks) == 0:
		return s.invalid(fmt.Sprintf("has no tick after %s: %q", now.UTC().Format(time.RFC3339), s.Spec),
			fmt.Sprintf("give a time to come before %d, or a date that exists", lastYear))
	case !s.Until.IsZero() && ticks[0].After(s.Until):
		return s.invalid(fmt.Sprintf("has no tick until %s", s.Until.UTC().Format(time.RFC3339)),
			fmt.Sprintf("the first would be at %s", ticks[0].Format(time.RFC3339)))
	}
	for i := 1; i < len(ticks); i++ {
		if gap := ticks[i].Sub(ticks[i-1]); s.Jitter >= gap {
			return s.invalid(fmt.Sprintf("has a jitter of %v, and ticks %v apart", s.Jitter, gap), "make the jitter shorter")
		}
	}
	return nil
}
