package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Begin records that the handlers of deliveries are about to start. With a store that is as durable as a publish, and
// all that are begun in one call are stored together.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	synced := s.e.synced(driver.PublishOptions{})
	errs := make([]error, len(ds))
	r := s.each(errs, errClosedAndLost, func(i int, now moment) error {
		c, err := s.living(ds[i], now)
		if err == nil && !c.begun {
			c.begun = true
			s.t.touch(c.item.e)
			s.t.secure(synced)
		}
		return err
	})
	fillNil(errs, s.e.outcome(ctx, r, synced))
	return errs
}

// each notes what becomes of each of several deliveries, with the topic locked, and returns the round to wait for.
func (s *subscription) each(errs []error, ended func() error, do func(i int, now moment) error) Round {
	if err := s.e.stopped(); err != nil {
		fillNil(errs, err)
		return nil
	}
	now, ok := s.lock()
	if !ok {
		fillNil(errs, ended())
		return nil
	}
	for i := range errs {
		errs[i] = do(i, now)
	}
	return s.t.unlock(now)
}

// fillNil notes what became of those to which nothing else happened.
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
