package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Receive waits until it can return at least one delivery, and returns at most max.
func (s *subscription) Receive(ctx context.Context, max int) ([]*driver.Delivery, error) {
	if err := driver.CheckMax(max); err != nil {
		return nil, err
	}
	var w *waiter
	for {
		if err := ctx.Err(); err != nil {
			if w != nil { // woken and cancelled at once: somebody else gets the wake-up
				s.giveUp(w)
			}
			return nil, err
		}
		if err := s.e.stopped(); err != nil {
			return nil, err
		}
		now, ok := s.lock()
		if !ok {
			return nil, refusal.Receive(true, false)
		}
		if w != nil {
			s.spare = w
		}
		if err := refusal.Receive(s.closed, s.drained); err != nil {
			if w != nil { // a wake-up that came goes to somebody else
				s.handOn()
			}
			s.t.unlock(now)
			return nil, err
		}
		if claims := s.claim(max, now); len(claims) > 0 {
			s.handOn()
			safety := s.t.safety(claims)
			ahead := s.readAhead()
			r := s.t.unlock(now)
			if r == nil {
				return s.deliver(claims, nil, now), nil
			}
			if w = nil; ahead != nil {
				_ = ahead.run(ctx, r) // whoever needs it will be told why not
			}
			if ds, err := s.deliverStored(ctx, r, safety, claims, now); len(ds) > 0 || err != nil {
				return ds, err
			}
			continue // none of them could be read, or is safe yet
		}
		s.handOn()
		if s.starving() {
			w = nil
			if err := s.g.beginNext().run(ctx, s.t.unlock(now)); err != nil {
				return nil, err
			}
			continue
		}
		w = s.queueUp()
		s.t.unlock(now)
		select {
		case <-w.woken:
		case <-s.e.stop:
			s.giveUp(w)
			w = nil
		case <-ctx.Done():
			s.giveUp(w)
			return nil, ctx.Err()
		}
	}
}

// starving reports whether only cold messages are left to claim.
func (s *subscription) starving() bool {
	return s.g.cold > 0 && !s.full() && !s.g.paused && !s.t.paused
}

// readAhead begins to read what comes next before the window is empty, or returns nil.
func (s *subscription) readAhead() *thaw {
	g := s.g
	if g.cold == 0 || s.t.cold.loading != nil || g.window() >= s.e.o.Window/2 {
		return nil
	}
	return s.g.beginNext()
}

// handOn wakes another consumer when there is more than this one took: a wake-up is never lost with its receiver.
func (s *subscription) handOn() {
	if s.g.awaited() && !s.g.queue.Empty() {
		s.g.wakeNow(1)
	}
}

// giveUp ends a wait that was cancelled. If it was woken meanwhile, somebody else gets the wake-up.
func (s *subscription) giveUp(w *waiter) {
	now, ok := s.lock()
	if !ok { // nothing changes any more
		return
	}
	if w.next != nil {
		w.dequeue()
	} else {
		s.handOn()
	}
	s.t.unlock(now)
}
