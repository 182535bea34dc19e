package schedule

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// claim claims the unique ids of what is about to be published, all together. A tick whose id another message has
// passes without its own. One of which nobody knows whether it has the id is parked: it has the same message when it
// comes again, and goes on with that claim.
func (s *server) claim(ctx context.Context, all []*taken) {
	var of []*taken
	var ms []*driver.Message
	for _, t := range all {
		if !t.park && t.message != nil && t.message.Unique != nil {
			of, ms = append(of, t), append(ms, t.message)
		}
	}
	var taken *ferry.UniqueError
	for i, c := range s.names.Claim(ctx, ms, 0) {
		switch t := of[i]; {
		case c.Err == nil:
			t.claim = c
		case errors.As(c.Err, &taken):
			s.skip(ctx, t, c.Err)
		default:
			s.log.WarnContext(ctx, "the unique id of a scheduled message cannot be claimed, and is tried again", "schedule",
				t.found.name, "error", c.Err)
			t.park = true
		}
	}
}

// noteUnique tells the keeper of unique ids what the answer to a settlement means to them. Where the message may be
// stored nothing is told: it holds its id, and the tick, if it comes again, goes on with the claim.
func (s *server) noteUnique(t *taken, err error) {
	switch {
	case t.claim == nil:
	case err == nil && t.message != nil:
		s.names.Stored(t.claim, driver.Receipt{ID: t.message.ID})
	case err == nil, errors.Is(err, driver.ErrLeaseLost) && t.delivery.Cause == driver.CauseFirst:
		// an earlier taker may have stored it
		s.names.UndoLater(t.claim)
	}
}

// close writes what is still to be noted of unique ids.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.names.Close(ctx)
}
