package victim

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/payload"
)

// subscription writes down every claim, extension and settlement, as the broker sees them.
type subscription struct {
	inner  driver.Subscription
	driver *Driver
}

// Receive returns deliveries. While the broker is not reached it fails at once, as a broken connection does. Claims of
// a process that dies meanwhile stay claimed, and nobody hears of them.
func (s *subscription) Receive(ctx context.Context, most int) ([]*driver.Delivery, error) {
	if c := s.driver.harm.pass(); c.buried || c.away {
		return nil, lost(c)
	}
	waiting, done := s.driver.harm.wait(ctx)
	ds, err := s.inner.Receive(waiting, most)
	done()
	c := s.driver.harm.pass()
	if c.buried {
		return nil, errBuried
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return nil, errAway
	}
	for i, d := range ds {
		e := history.Claim(history.KindClaimed, d)
		e.Seq, e.Hash = payload.Seq(d.Body), payload.Hash(d.Body)
		s.driver.log.Record(e)
		ds[i] = shifted(d, c.shift)
	}
	return ds, err
}

// shifted returns a delivery as a backend with another clock would give it.
func shifted(d *driver.Delivery, by time.Duration) *driver.Delivery {
	if by == 0 {
		return d
	}
	m, c := *d.Message, *d
	m.PublishedAt, c.ClaimedAt = m.PublishedAt.Add(by), c.ClaimedAt.Add(by)
	c.Message = &m
	return &c
}

// Settle applies settlements, unless they or the answers get lost on the way.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	c := s.driver.harm.pass()
	if c.buried {
		return repeat(len(ss), errBuried)
	}
	for i := range ss {
		e := about(history.KindSettle, ss[i].Delivery)
		e.Outcome, e.After = ss[i].Outcome.String(), int64(ss[i].After)
		if ss[i].Failure != nil {
			e.Note = string(ss[i].Failure.Reason)
		}
		s.driver.log.Record(e)
	}
	errs := repeat(len(ss), errAway)
	if c = s.driver.harm.pass(); c.buried { // killed meanwhile: perhaps it was not written down any more
		return repeat(len(ss), errBuried)
	}
	if !c.away {
		errs = s.inner.Settle(ctx, ss)
	}
	c = s.driver.harm.pass()
	for i := range ss {
		if c.buried || c.mute {
			errs[i] = errMute
		}
		e := about(result(errs[i]), ss[i].Delivery)
		if errs[i] != nil {
			e.Note = errs[i].Error()
		}
		s.driver.log.Record(e)
	}
	return errs
}

func result(err error) history.Kind {
	switch {
	case err == nil:
		return history.KindSettled
	case errors.Is(err, driver.ErrUnknown):
		return history.KindSettleUnknown
	}
	return history.KindSettleRefused
}

// Extend makes leases longer, unless that gets lost on the way.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	c := s.driver.harm.pass()
	if c.buried || c.away || c.unheard {
		return repeat(len(ds), lost(c))
	}
	called := s.driver.log.Clock()
	errs := s.inner.Extend(ctx, ds)
	if c = s.driver.harm.pass(); c.buried || c.mute {
		return repeat(len(ds), errMute)
	}
	for i, err := range errs {
		if err == nil {
			e := about(history.KindExtended, ds[i])
			e.Called = called
			s.driver.log.Record(e)
		}
	}
	return errs
}

// Begin records the start of handlers, unless that gets lost on the way.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	if c := s.driver.harm.pass(); c.buried || c.away || c.unheard {
		return repeat(len(ds), lost(c))
	}
	for _, d := range ds {
		s.driver.log.Record(about(history.KindBegin, d))
	}
	errs := s.inner.Begin(ctx, ds)
	if c := s.driver.harm.pass(); c.buried || c.mute {
		return repeat(len(ds), errMute)
	}
	for i, err := range errs {
		if err == nil {
			s.driver.log.Record(about(history.KindBegun, ds[i]))
		}
	}
	return errs
}

// Drain says that nothing more is received.
func (s *subscription) Drain(ctx context.Context) error {
	if c := s.driver.harm.pass(); c.buried {
		return nil
	}
	return s.inner.Drain(ctx)
}

// Close gives everything back.
func (s *subscription) Close(ctx context.Context) error {
	if c := s.driver.harm.pass(); c.buried {
		return nil
	}
	s.driver.log.Record(history.Event{Kind: history.KindClose})
	return s.inner.Close(ctx)
}

func about(kind history.Kind, d *driver.Delivery) history.Event {
	e := history.Event{Kind: kind, ID: d.ID, Topic: d.Topic, Group: d.Group}
	if d.Token != nil {
		e.Token = d.Token.String()
	}
	return e
}

func repeat(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
