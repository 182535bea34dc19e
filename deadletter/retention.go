package deadletter

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Retention bounds the letters of each topic and group; the oldest deaths go first. The zero value keeps everything,
// which is the default everywhere: nothing is lost silently.
type Retention struct {
	MaxAge   time.Duration // since it died, or was found; what does not know stays
	MaxCount int64
	MaxBytes int64 // of bodies, keys and headers
}

// Check says what is wrong with the limits, or nil.
func (r Retention) Check() error {
	if r.MaxAge < 0 || r.MaxCount < 0 || r.MaxBytes < 0 {
		return driver.NewError(driver.ErrInvalid, "a limit of the retention is negative",
			"leave it zero to keep everything", nil)
	}
	return nil
}

// ExpireReport is what an expiry deleted, by the limit that was exceeded.
type ExpireReport struct{ ByAge, ByCount, ByBytes int }

// Total is how many letters were deleted.
func (e ExpireReport) Total() int { return e.ByAge + e.ByCount + e.ByBytes }

// Expire deletes the letters of a selection that are beyond the limits, and counts them.
func (q *Queue) Expire(ctx context.Context, sel Selection, r Retention) (ExpireReport, error) {
	return q.expire(ctx, sel, r, q.delete)
}

// CountExpired counts what Expire would delete.
func (q *Queue) CountExpired(ctx context.Context, sel Selection, r Retention) (ExpireReport, error) {
	return q.expire(ctx, sel, r, func(_ context.Context, ts []driver.Target) []error { return make([]error, len(ts)) })
}

// expire gives the letters that are beyond the limits to remove, and counts those that it removed.
func (q *Queue) expire(ctx context.Context, sel Selection, r Retention,
	remove func(context.Context, []driver.Target) []error) (ExpireReport, error) {
	var e ExpireReport
	if err := r.Check(); err != nil || r == (Retention{}) {
		return e, err
	}
	if len(sel.Only) > 0 {
		return e, driver.NewError(driver.ErrInvalid, "single letters do not expire", "remove them", nil)
	}
	s, err := q.newScan(ctx, sel, "")
	if err != nil {
		return e, err
	}
	for _, p := range s.places {
		one := sel
		one.Topic, one.Group = p.topic, p.group
		if err := q.expirePlace(ctx, one, r, &e, remove); err != nil && !s.vanished(err) {
			return e, err
		}
	}
	return e, nil
}

// excess is what has to go from one place.
type excess struct {
	count, bytes int64
	before       time.Time
}

// over returns which counter a letter that has to go belongs to, or nil if it may stay.
func (x *excess) over(l Letter, e *ExpireReport) *int {
	switch {
	case !x.before.IsZero() && !l.diedAt().IsZero() && l.diedAt().Before(x.before):
		return &e.ByAge
	case x.count > 0:
		return &e.ByCount
	case x.bytes > 0:
		return &e.ByBytes
	}
	return nil
}

func (q *Queue) expirePlace(ctx context.Context, sel Selection, r Retention, e *ExpireReport,
	remove func(context.Context, []driver.Target) []error) error {
	x, err := q.excess(ctx, sel, r)
	if err != nil {
		return err
	}
	s, err := q.newScan(ctx, sel, "")
	if err != nil {
		return err
	}
	var targets []driver.Target
	var why []*int
	flush := func() error {
		for i, err := range remove(ctx, targets) {
			if err != nil && !permanent(err) {
				return err
			}
			if err == nil {
				*why[i]++
			}
		}
		targets, why = targets[:0], why[:0]
		return nil
	}
	err = s.each(ctx, func(l Letter, fault error) (bool, error) {
		if fault != nil {
			return true, nil
		}
		counter := x.over(l, e)
		if counter == nil {
			// dead letters behind it died later; parse errors stand in the order of publishing
			return sel.State == driver.StateInvalid, nil
		}
		x.count--
		x.bytes -= int64(l.size())
		if targets, why = append(targets, l.Target()), append(why, counter); len(targets) < replayPart {
			return true, nil
		}
		return true, flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// excess finds out how much is there beyond the limits.
func (q *Queue) excess(ctx context.Context, sel Selection, r Retention) (x excess, err error) {
	if r.MaxAge > 0 {
		x.before = time.Now().Add(-r.MaxAge)
	}
	if r.MaxCount == 0 && r.MaxBytes == 0 {
		return x, nil
	}
	s, err := q.newScan(ctx, sel, "")
	if err != nil {
		return x, err
	}
	if r.MaxBytes == 0 && sel.Where == nil {
		x.count = s.at.Total - r.MaxCount
		return x, nil
	}
	var count, bytes int64
	err = s.each(ctx, func(l Letter, fault error) (bool, error) {
		if fault == nil {
			count++
			bytes += int64(l.size())
		}
		return true, nil
	})
	if r.MaxCount > 0 {
		x.count = count - r.MaxCount
	}
	if r.MaxBytes > 0 {
		x.bytes = bytes - r.MaxBytes
	}
	return x, err
}
