package redisshell

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Turns bound how many claims are under way at once. Whoever waits for a connection of the client waits behind
// everybody, and there may be a claim for each group that is consumed. So claims have no more than half of the
// connections: what renews leases and ownership, and what settles, finds one.
type Turns chan struct{}

// NewTurns returns those of a client with so many connections.
func NewTurns(connections int) Turns { return make(Turns, max(1, connections/2)) }

// Take waits for a turn. Without one nothing may be claimed.
func (t Turns) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return driver.NewError(driver.ErrNotApplied, "other claims have all connections that are for claims",
			"look why the server is slow, or give the client a larger pool", ctx.Err())
	}
}

// GiveBack ends a turn.
func (t Turns) GiveBack() { <-t }
