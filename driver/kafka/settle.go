package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// settling is one settlement on its way.
type settling struct {
	c     *claim
	o     *driver.Settlement
	last  *driver.Failure // with what the backend sets
	first *kgo.Record     // stored before the outcome takes effect: a retry in the side log, or a dead letter
	then  *kgo.Record     // stored after first: the end of what the side log holds
	late  *kgo.Record     // stored when the outcome has taken effect

	emits []posting     // in one transaction with the outcome
	err   error         // of the transaction
	over  chan struct{} // closed when it has ended
}

// Settle applies settlements. What an outcome needs is durably produced first; only then is its offset done.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	var work []*settling // what more is needed for
	var all []settling
	s.m.mu.Lock()
	now := time.Now()
	for i := range ss {
		var noted bool
		if noted, errs[i] = s.note(&ss[i], now); noted {
			continue
		}
		if work == nil {
			work, all = make([]*settling, len(ss)), make([]settling, len(ss))
		}
		all[i].o = &ss[i]
		if errs[i] = s.begin(&all[i], now); errs[i] == nil {
			work[i] = &all[i]
		}
	}
	s.m.mu.Unlock()
	if work == nil {
		s.m.makeRoom()
		return errs
	}
	together := s.emit(ctx, work, errs)
	s.store(ctx, work, errs, func(w *settling) *kgo.Record { return w.first })
	s.store(ctx, work, errs, func(w *settling) *kgo.Record { return w.then })
	s.m.mu.Lock()
	now = time.Now()
	for i, w := range work {
		switch {
		case w == nil:
		case errs[i] == nil && s.ours(w.c, now):
			s.apply(w)
		case errs[i] == nil:
			errs[i] = w.overtaken()
			fallthrough
		default:
			s.m.keep(w)
		}
	}
	s.m.mu.Unlock()
	for i := range all {
		s.m.storeEnds(all[i].late)
	}
	s.m.makeRoom()
	for i, w := range together {
		errs[i] = w.await(ctx)
	}
	return errs
}

// note lets an outcome take effect that needs nothing stored, as most do, and reports whether it was one.
func (s *subscription) note(o *driver.Settlement, now time.Time) (noted bool, err error) {
	if o.Outcome != driver.Ack && o.Outcome != driver.Drop || len(o.Emit) > 0 {
		return false, nil
	}
	c, err := s.living(o.Delivery, now)
	if err == nil && c.it.side != "" {
		return false, nil
	}
	if err == nil {
		s.apply(&settling{c: c, o: o})
	}
	return true, err
}

// ours reports whether a claim was surely still ours until now, so that what was stored for it takes effect.
func (s *subscription) ours(c *claim, now time.Time) bool {
	return !c.ended && !c.p.handed && !c.p.succeeded && s.m.vouched(now)
}

// overtaken is the answer to a settlement whose partition went to another consumer meanwhile.
func (w *settling) overtaken() error {
	if w.first == nil && w.then == nil && len(w.o.Emit) == 0 {
		return errLost("the partition went to another consumer") // nothing was sent
	}
	return driver.NewError(driver.ErrUnknown, "the partition went to another consumer while the outcome was stored", "the message is delivered again if it came too late", nil)
}

// begin checks a settlement and reserves its claim, so that the lease cannot end meanwhile. In strict order the held
// messages behind one that returns lose their tokens now: a later settlement of the same call is refused.
func (s *subscription) begin(w *settling, now time.Time) error {
	o := w.o
	c, err := s.living(o.Delivery, now)
	if err != nil {
		return err
	}
	c.settling = true
	w.c = c
	it, m := c.it, s.m
	after := max(0, o.After)
	if o.Failure != nil {
		last := *o.Failure
		w.last = &last
		w.last.At, w.last.Instance, w.last.Attempt = now.UTC(), s.o.Instance, it.attempts+1
	}
	switch o.Outcome {
	case driver.Retry:
		history := it.history
		if o.Failure != nil {
			history = driver.AppendFailure(history, *w.last)
		}
		w.first = m.sideRecord(it, state{After: after, Tail: !m.blocks(it), Attempts: it.attempts + 1, Lost: it.lost, Cause: driver.CauseRetry,
			History: envelope.AppendHistory(nil, history...)})
	case driver.Release:
		if after > 0 {
			w.first = m.sideRecord(it, state{After: after, Attempts: it.attempts, Lost: it.lost, Cause: driver.CauseReleased,
				History: envelope.AppendHistory(nil, it.history...)})
		}
	case driver.Dead:
		var last driver.Failure
		if w.last != nil {
			last = *w.last
		}
		w.first = m.deadRecord(it, last, s.o.Instance)
		fallthrough
	default:
		if it.side != "" {
			w.then = m.endOf(it)
		}
	}
	if m.order == driver.Strict && (o.Outcome == driver.Retry || o.Outcome == driver.Release) {
		m.returnBehind(it, driver.CauseReleased)
	}
	return nil
}

func (s *subscription) store(ctx context.Context, work []*settling, errs []error, which func(*settling) *kgo.Record) {
	var records []*kgo.Record
	var at []int
	for i, w := range work {
		if w == nil || errs[i] != nil {
			continue
		}
		if r := which(w); r != nil {
			records, at = append(records, r), append(at, i)
		}
	}
	if len(records) == 0 {
		return
	}
	for n, err := range s.m.d.produceEach(ctx, records) {
		errs[at[n]] = err
	}
}

// keep lets the holder of a delivery have it that could not be settled.
func (m *member) keep(w *settling) {
	w.c.settling = false
	if it := w.c.it; it != nil && it.unsaved {
		m.suspect(it) // nothing was stored of it meanwhile
		m.wakeSaver()
	}
}

// apply lets an outcome take effect whose records are stored.
func (s *subscription) apply(w *settling) {
	m, it := s.m, w.c.it
	m.end(w.c)
	after := max(0, w.o.After)
	if final := w.o.Outcome != driver.Retry && w.o.Outcome != driver.Release; final && it.side != "" && w.then == nil {
		// A lost lease was stored meanwhile.
		w.late = m.endOf(it)
	}
	switch w.o.Outcome {
	case driver.Ack:
		it.p.tally.Acked++
		m.remove(it)
	case driver.Drop:
		it.p.tally.Dropped++
		m.remove(it)
	case driver.Dead:
		m.remove(it)
	case driver.Retry:
		it.attempts++
		if w.o.Failure != nil {
			it.history = driver.AppendFailure(it.history, *w.last)
		}
		it.cause, it.tail = driver.CauseRetry, !m.blocks(it) // in strict order it never leaves the head of its key
		it.p.saved(it, w.first)
		m.back(it, after)
	case driver.Release:
		it.cause, it.tail = driver.CauseReleased, false
		if w.first != nil {
			it.p.saved(it, w.first)
		}
		m.back(it, after)
	}
}

// back puts an item that was returned where it belongs.
func (m *member) back(it *item, after time.Duration) {
	if after <= 0 {
		if it.tail {
			m.toTail(it)
		}
		m.giveBack(it)
		return
	}
	it.due = time.Now().Add(after)
	if !m.blocks(it) {
		m.detach(it)
	}
	m.wait(it)
	m.spill(it)
	if after > parkAfter {
		m.parkBehind(it)
	}
	if at := it.expires(); !at.IsZero() {
		m.alarm(at, it, nil)
	}
}
