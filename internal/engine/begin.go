package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Begin records that the handlers of deliveries are about to start. With a store that is as durable as a publish, and
// all that are begun in one call are stored together.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	synced := s.e.synced(driver.PublishOptions{})
	r, errs := s.each(ds, errClosedAndLost, func(d *driver.Delivery, now moment) error {
		c, err := s.living(d, now)
		if err == nil && !c.begun {
			c.begun = true
			s.t.touch(c.item.e)
			s.t.secure(synced)
		}
		return err
	})
	if r != nil {
		fillNil(errs, s.e.outcome(ctx, r, synced))
	}
	return errs
}

// each calls do for each delivery, with the topic locked, and returns what became of it, and the round to wait for.
func (s *subscription) each(ds []*driver.Delivery, ended func() error,
	do func(d *driver.Delivery, now moment) error) (Round, []error) {
	errs := make([]error, len(ds))
	if err := s.e.stopped(); err != nil {
		return nil, fillNil(errs, err)
	}
	now, ok := s.lock()
	if !ok {
		return nil, fillNil(errs, ended())
	}
	for i, d := range ds {
		errs[i] = do(d, now)
	}
	return s.t.unlock(now), errs
}

// fillNil is what became of those to which nothing else happened.
func fillNil(errs []error, err error) []error {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
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
