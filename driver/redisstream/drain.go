package redisstream

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/internal/redisshell"
)

// Drain gives up every partition at once: what is held stays leased to its holder whoever owns its partition, and keeps
// its key from others. What unanswered claims took goes back, because no claim follows that would bring it.
func (s *subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	if s.gate.Closed() {
		s.mu.Unlock()
		return nil
	}
	s.gate.Drain()
	var calls []*scriptCall
	for i := range s.stakes {
		if lost := s.stakes[i].lost; lost != "" {
			calls = append(calls, &scriptCall{part: s.t.parts[i], script: &s.d.scripts.leave, args: []any{s.o.Group, "", lost}})
		}
	}
	s.mu.Unlock()
	s.d.runAll(ctx, calls)
	err := s.balance(ctx)
	if errors.Is(err, redisshell.ErrStale) {
		err = s.gone()
	}
	for _, c := range calls {
		if c.err != nil {
			err = c.err
		}
	}
	return err
}
