package schedule

import (
	"time"

	cron "github.com/netresearch/go-cron"
)

// allHours are the bits of an hour field that matches all of them.
const allHours = 1<<24 - 1

// wall finds the ticks of cron fields in a zone whose clock is put forward and back. The fields are asked in the time
// that the clock on the wall shows, as if it were UTC, so that the parser knows nothing of zones.
//
// Fields that name hours tick once for each time they name: one that the clock skips is at the moment when it is put
// forward, and of one that comes twice the first counts. Fields of every hour tick as time passes: what is skipped is
// not there, and what comes twice ticks twice.
type wall struct {
	fields *cron.SpecSchedule
	zone   *time.Location
	hourly bool
}

// next returns the first tick after a time.
func (w wall) next(after time.Time) time.Time {
	at := after.In(w.zone)
	shown := w.shown(at, at)
	if start, _ := at.ZoneBounds(); !w.hourly && !start.IsZero() { // what was shown before start counts no more
		shown = later(shown, w.shown(start, start.Add(-1)).Add(-time.Second))
	}
	for {
		named := w.fields.Next(shown)
		if named.IsZero() {
			return named
		}
		tick := at.Add(named.Sub(w.shown(at, at)))
		_, end := at.ZoneBounds() // until when this offset from UTC holds
		if end.IsZero() || tick.Before(end) {
			return tick.UTC()
		}
		since := w.shown(end, end)
		if !w.hourly {
			if named.Before(since) { // skipped
				return end.UTC()
			}
			since = later(since, w.shown(end, at))
		}
		at, shown = end, since.Add(-time.Second)
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// shown returns what the clock on the wall shows at t, by the offset that holds at by, as a time in UTC.
func (w wall) shown(t, by time.Time) time.Time {
	_, offset := by.In(w.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
