package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Cancel ends an operation: at once if nobody works on it, and otherwise as soon as its worker looks, within a second
// or two. What is done stays done. ErrConflict if it has ended, or was cancelled before.
func (q *Queue) Cancel(ctx context.Context, id string) error {
	for {
		s, held, err := q.read(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case s.End != "":
			return driver.NewError(ferry.ErrConflict,
				fmt.Sprintf("operation %s is %s since %s", id, s.End, s.Ended.Format(time.RFC3339)),
				"there is nothing to cancel", nil)
		case s.Cancel && held:
			return driver.NewError(ferry.ErrConflict, fmt.Sprintf("operation %s was cancelled before", id),
				"it ends as soon as its worker looks; wait for it", nil)
		}
		s.Cancel = true
		err = q.replace(ctx, &s, held)
		if !errors.Is(err, ferry.ErrConflict) {
			return err
		}
		// It was noted meanwhile how far it is.
	}
}

// replace writes an operation that somebody else may work on: as cancelled if nobody does.
func (q *Queue) replace(ctx context.Context, s *stored, held bool) error {
	w := driver.Write{Name: opPrefix + s.id, If: driver.Condition(s.revision)}
	if !held {
		now := q.write(ctx, driver.Write{Name: clockName, TTL: driver.MinValueTTL, Quiet: true})
		if now.Err != nil {
			return now.Err
		}
		s.End, s.Ended, w.TTL = Cancelled, now.Written.UTC(), History
	}
	var err error
	if w.Data, err = s.encode(); err != nil {
		return err
	}
	return q.write(ctx, w).Err
}
