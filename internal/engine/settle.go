package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settleChunk bounds how many settlements one critical section applies: publishers wait for it.
const settleChunk = 64

// Settle applies each settlement as one step, in order. A cancelled context changes nothing: there is no wait.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	var last Round
	var behind refusal.Behind
	for i := 0; i < len(ss); {
		var r Round
		n := 0
		for n < settleChunk && i+n < len(ss) && len(ss[i+n].Emit) == 0 {
			n++
		}
		if n > 0 {
			r = s.settlePlain(ss[i:i+n], errs[i:i+n], &behind)
		} else {
			n = 1
			r, errs[i] = s.settleAndEmit(ctx, &ss[i], &behind)
		}
		if r != nil { // a step that stored nothing has none
			last = r
		}
		i += n
	}
	if last != nil { // a power loss may undo the newest: they are delivered again
		fillNil(errs, s.e.outcome(context.WithoutCancel(ctx), last, false))
	}
	return errs
}

// settlePlain applies settlements without follow-ups under one lock.
func (s *subscription) settlePlain(ss []driver.Settlement, errs []error, behind *refusal.Behind) Round {
	return s.each(errs, errClosedAndLost, func(i int, now moment) error {
		err := behind.Refuse(ss[i].Delivery)
		if err == nil {
			err = s.settle(&ss[i], now)
			behind.Note(ss[i].Delivery, err)
		}
		return err
	})
}

func errClosedAndLost() error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "what was held is delivered again",
		driver.ErrLeaseLost)
}

func (s *subscription) settle(o *driver.Settlement, now moment) error {
	if err := o.Check(s.e.o.Capabilities.MaxBody); err != nil {
		return err
	}
	c, err := s.spoken(o.Delivery, now)
	if err != nil {
		return err
	}
	s.apply(c, o, now)
	return nil
}

// settleAndEmit publishes follow-ups and applies the outcome in one step over all topics.
func (s *subscription) settleAndEmit(ctx context.Context, o *driver.Settlement, behind *refusal.Behind) (_ Round,
	err error) {
	if err := behind.Refuse(o.Delivery); err != nil {
		return nil, err
	}
	defer func() { behind.Note(o.Delivery, err) }()
	if err := o.Check(s.e.o.Capabilities.MaxBody); err != nil {
		return nil, err
	}
	if r, err := s.check(o.Delivery); err != nil { // before topics are made for the follow-ups
		return r, err
	}
	now := s.e.now()
	entries, names, err := s.e.prepare(o.Emit, now)
	if err != nil {
		return nil, err
	}
	ts, err := s.e.lockAllNew(context.WithoutCancel(ctx), append(names, s.t.name), o.Emit, entries, now)
	if err != nil {
		return nil, err
	}
	err = s.emitAndSettle(ts, entries, o, now)
	return s.e.unlockAll(ts, now), err
}

func (s *subscription) emitAndSettle(ts map[string]*topic, entries []*entry, o *driver.Settlement, now moment) error {
	if ts[s.t.name] != s.t { // deleted and made again
		return errClosedAndLost()
	}
	if _, err := s.spoken(o.Delivery, now); err != nil {
		return err
	}
	for i, m := range o.Emit {
		ts[m.Topic].mustAccept(entries[i], now)
	}
	return s.settle(o, now)
}

func (s *subscription) check(d *driver.Delivery) (Round, error) {
	now, ok := s.lock()
	if !ok {
		return nil, errClosedAndLost()
	}
	_, err := s.spoken(d, now)
	return s.t.unlock(now), err
}

// apply ends a claim with an outcome.
func (s *subscription) apply(c *claim, o *driver.Settlement, now moment) {
	g, it := s.g, c.item
	it.e.giveBack()
	c.end()
	if (o.Outcome == driver.Retry || o.Outcome == driver.Release) && g.strict(it) {
		g.returnBehind(it, false, now)
	}
	switch o.Outcome {
	case driver.Ack:
		g.stats.Acked++
		s.finish(it, o, now)
	case driver.Drop:
		g.stats.Dropped++
		s.finish(it, o, now)
	case driver.Dead:
		s.fail(it, o.Failure, now)
		g.bury(it, o.Failure, s.o.Instance, now)
	case driver.Retry:
		s.fail(it, o.Failure, now)
		g.stats.Retried++
		it.cause = driver.CauseRetry
		// In strict order it stays the head of its key; otherwise it joins the tail, so that messages that fail cannot
		// starve others.
		g.dueAfter(it, o.After, !g.strict(it), now)
	case driver.Release:
		if !o.Unseen {
			it.cause = driver.CauseReleased
		}
		g.dueAfter(it, o.After, false, now)
	}
}

// finish ends a message, and notes how it was settled if it is kept.
func (s *subscription) finish(it *item, o *driver.Settlement, now moment) {
	to := s.t.final()
	if to == done {
		it.record().ending = ending{took: max(0, o.Took), by: s.o.Instance}
	}
	s.g.finish(it, to, now)
}

// final is the state of what is settled: kept or gone.
func (t *topic) final() itemState {
	if t.config.Keep > 0 {
		return done
	}
	return gone
}

// fail counts a failed attempt.
func (s *subscription) fail(it *item, f *driver.Failure, now moment) {
	it.failures++
	if f == nil {
		return
	}
	r := it.record()
	stamped := *f // with what the backend knows
	stamped.At, stamped.Instance, stamped.Attempt = now.at.Round(0), s.o.Instance, int(it.failures)
	r.history = driver.AppendFailure(r.history, stamped)
}
