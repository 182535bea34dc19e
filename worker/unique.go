package worker

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// noteUnique tells the keeper of unique ids what a settlement that was answered for good means to them. engine.mu is
// held.
func (c *consumer) noteUnique(r *run, s *settlement, err error) {
	names := c.e.names
	for _, claim := range r.emits.claimed() {
		switch {
		case err == nil && s.Outcome == driver.Ack:
			names.Stored(claim.id, driver.Receipt{ID: claim.msg.ID})
		case err == nil, errors.Is(err, ferry.ErrLeaseLost) && !r.doubtful:
			// the follow-up is not stored, and never will be by us
			names.UndoLater(claim.id)
		}
	}
	if err == nil && len(r.d.Headers) > 0 && final(s.Outcome) {
		names.Settled(r.d)
	}
}

// final reports whether a group is done with a message that is settled so.
func final(o driver.Outcome) bool { return o == driver.Ack || o == driver.Dead || o == driver.Drop }

// freeUnique writes what is still to be noted of unique ids.
func (e *engine) freeUnique() {
	ctx, cancel := context.WithTimeout(e.base, closeTimeout)
	defer cancel()
	e.names.Close(ctx)
}
