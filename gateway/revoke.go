package gateway

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// revoking hands what the broker is about to take away to the client, and returns when that has settled all of it, or
// time is over.
func (s *session) revoking(ctx context.Context, ds []*driver.Delivery) {
	until, limited := ctx.Deadline()
	if !limited {
		until = time.Now().Add(s.o.Lease)
	}
	select {
	case s.revoked <- revocation{deliveries: ds, until: until}:
	case <-ctx.Done():
		return
	}
	tick := time.NewTicker(revokeTick)
	defer tick.Stop()
	for s.holdsAny(ds) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// revokeTick is how often it is looked whether a client has settled what it must. A rebalance waits for it, and takes
// seconds.
const revokeTick = 20 * time.Millisecond

func (s *session) holdsAny(ds []*driver.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		if _, held := s.handles[d.Token.String()]; held {
			return true
		}
	}
	return false
}

// revocation waits for what is taken away.
func (s *session) revocation(ctx context.Context) *frame.Revoked {
	select {
	case r := <-s.revoked:
		return &frame.Revoked{Within: time.Until(r.until), Handles: s.handlesOf(r.deliveries)}
	case <-ctx.Done():
	}
	return &frame.Revoked{}
}

func (s *session) handlesOf(ds []*driver.Delivery) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var handles []uint64
	for _, d := range ds {
		if h, held := s.handles[d.Token.String()]; held {
			handles = append(handles, h)
		}
	}
	return handles
}
