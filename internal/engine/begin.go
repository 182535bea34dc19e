package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Begin records that the handlers of deliveries are about to start. With a store that is as durable as a publish, and
// all that are begun in one call are stored together.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	if err := s.e.stopped(); err != nil {
		return repeat(errs, err)
	}
	now, ok := s.lock()
	if !ok {
		return repeat(errs, errClosedAndLost())
	}
	synced := s.e.synced(driver.PublishOptions{})
	for i, d := range ds {
		c, err := s.living(d, now)
		if err != nil {
			errs[i] = err
			continue
		}
		if !c.begun {
			c.begun = true
			s.t.touch(c.item.e)
			s.t.secure(synced)
		}
	}
	if r := s.t.unlock(now); r != nil {
		fillNil(errs, s.e.outcome(ctx, r, synced))
	}
	return errs
}

// fillNil is what became of those to which nothing else happened.
func fillNil(errs []error, err error) {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
}

// Drain ends Receive. Leases are per message: there is nothing else to give up.
func (s *subscription) Drain(context.Context) error {
	now, ok := s.lock()
	if !ok {
		return nil
	}
	s.drained = true
	for len(s.waiters) > 0 {
		s.wake()
	}
	s.t.unlock(now)
	return nil
}
