package redisstream

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Drain gives up every partition at once: what is held stays leased to its holder whoever owns its partition, and keeps its key from others.
// What unanswered claims took goes back, because no claim follows that would bring it.
func (s *subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.draining = true
	var calls []*scriptCall
	for i := range s.stakes {
		if lost := s.stakes[i].lost; lost != "" {
			calls = append(calls, &scriptCall{part: s.t.parts[i], script: &s.d.scripts.leave, args: []any{s.o.Group, "", lost}})
		}
	}
	s.mu.Unlock()
	s.announce()
	s.d.runAll(ctx, calls)
	err := s.gone(s.balance(ctx))
	for _, c := range calls {
		if c.err != nil {
			err = c.err
		}
	}
	return err
}

// receives says why nothing can be received any more, or nil. The lock is held.
func (s *subscription) receives() error {
	switch {
	case s.closed:
		return driver.NewError(driver.ErrClosed, "the subscription is closed", "subscribe again", nil)
	case s.draining:
		return driver.NewError(driver.ErrClosed, "the subscription is drained", "settle what is held and close it; subscribe again to receive", nil)
	}
	return nil
}
