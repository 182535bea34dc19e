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
	if err := s.e.stopped(); err != nil {
		return fillNil(errs, err)
	}
	var last Round
	var behind refusal.Behind
	for i := 0; i < len(ss); {
		if len(ss[i].Emit) > 0 {
			if errs[i] = behind.Refuse(ss[i].Delivery); errs[i] == nil {
				var r Round
				r, errs[i] = s.settleAndEmit(ctx, &ss[i])
				last = later(last, r)
				behind.Note(ss[i].Delivery, errs[i])
			}
			i++
			continue
		}
		n := 1
		for n < settleChunk && i+n < len(ss) && len(ss[i+n].Emit) == 0 {
			n++
		}
		last = later(last, s.settlePlain(ss[i:i+n], errs[i:i+n], &behind))
		i += n
	}
	s.confirm(ctx, last, errs)
	return errs
}

// later returns the round to wait for after another step: that of a step that stored nothing is nil.
func later(last, r Round) Round {
	if r == nil {
		return last
	}
	return r
}

// confirm waits until settlements survive the process. A power loss may undo the newest: they are delivered again.
func (s *subscription) confirm(ctx context.Context, r Round, errs []error) {
	if r == nil {
		return
	}
	fillNil(errs, s.e.outcome(context.WithoutCancel(ctx), r, false))
}

// settlePlain applies settlements without follow-ups under one lock.
func (s *subscription) settlePlain(ss []driver.Settlement, errs []error, behind *refusal.Behind) Round {
	now, ok := s.lock()
	if !ok {
		fillNil(errs, errClosedAndLost())
		return nil
	}
	for i := range ss {
		if errs[i] = behind.Refuse(ss[i].Delivery); errs[i] == nil {
			errs[i] = s.settle(&ss[i], now)
			behind.Note(ss[i].Delivery, errs[i])
		}
	}
	return s.t.unlock(now)
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
func (s *subscription) settleAndEmit(ctx context.Context, o *driver.Settlement) (Round, error) {
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
		g.retry(it, o, now)
	case driver.Release:
		if !o.Unseen {
			it.cause = driver.CauseReleased
		}
		if o.After > 0 {
			g.wait(it, now.after(o.After), false, now)
		} else {
			g.comeBack(it, now)
		}
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

// retry makes it due again. In strict order it stays the head of its key; otherwise it joins the tail, so that
// messages that fail cannot starve others.
func (g *group) retry(it *item, o *driver.Settlement, now moment) {
	toTail := !g.strict(it)
	if o.After > 0 {
		g.wait(it, now.after(o.After), toTail, now)
		return
	}
	if toTail {
		g.queue.Remove(&it.Node)
		it.Place = g.t.nextPlace()
	}
	g.comeBack(it, now)
}

// fail counts a failed attempt.
func (s *subscription) fail(it *item, f *driver.Failure, now moment) {
	it.failures++
	if f == nil {
		return
	}
	r := it.record()
	r.history = driver.AppendFailure(r.history, s.stamped(*f, it, now))
}

// stamped fills in what the backend knows.
func (s *subscription) stamped(f driver.Failure, it *item, now moment) driver.Failure {
	f.At, f.Instance, f.Attempt = now.at.Round(0), s.o.Instance, int(it.failures)
	return f
}
