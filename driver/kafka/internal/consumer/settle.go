package consumer

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settling is one settlement on its way.
type settling struct {
	c     *claim
	o     *driver.Settlement
	last  *driver.Failure // with what the backend sets
	first *kgo.Record     // stored before the outcome takes effect: a retry in the retry log, or a dead letter
	then  *kgo.Record     // stored after first: the end of what the retry log holds
	late  *kgo.Record     // stored when the outcome has taken effect

	pass  uint64          // which step of which call it is part of
	emits *publisher.Call // in one transaction with the outcome
	err   error           // of the transaction
	over  chan struct{}   // closed when it has ended
}

// Settle applies settlements. What an outcome needs is durably produced first; only then is its offset done. Of a
// strict key none stands before those of the messages ahead: it waits for them.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.StorePatience)
	defer cancel()
	errs := make([]error, len(ss))
	var behind refusal.Behind
	left, changed := s.settleSome(ctx, ss, nil, errs, &behind)
	for len(left) > 0 {
		select {
		case <-changed:
			left, changed = s.settleSome(ctx, ss, left, errs, &behind)
		case <-ctx.Done():
			for _, i := range left {
				errs[i] = errNotInTurn()
			}
			return errs
		}
	}
	return errs
}

// settleSome settles what need not wait, of all or of those that are left, and returns the others with what is closed
// when something has changed.
func (s *subscription) settleSome(ctx context.Context, ss []driver.Settlement, left []int, errs []error,
	behind *refusal.Behind) (later []int, changed <-chan struct{}) {
	b := batch{s: s, ss: ss, errs: errs, behind: behind}
	s.m.mu.Lock()
	now := time.Now()
	lapsed := s.lapse(now)
	s.m.passes++
	if left == nil {
		for i := range ss {
			b.start(i, now)
		}
	}
	for _, i := range left {
		b.start(i, now)
	}
	if len(b.later) > 0 {
		changed = s.m.await()
	}
	s.m.mu.Unlock()
	s.m.saver.saveLapsed(lapsed)
	s.m.saver.tell(ctx, b.notices)
	if b.work != nil {
		b.finish(ctx)
	}
	s.m.windowFreed.Give()
	return b.later, changed
}

// batch is the settlements of a call that go together.
type batch struct {
	s       *subscription
	ss      []driver.Settlement
	errs    []error
	work    []*settling // what more is needed for; nil where nothing is
	all     []settling
	later   []int           // those that wait for others
	behind  *refusal.Behind // what could not even be tried; turn knows what failed
	notices []*kgo.Record   // see losses.go
}

// start lets an outcome take effect that needs nothing stored, as most do, and prepares the others.
func (b *batch) start(i int, now time.Time) {
	s, o := b.s, &b.ss[i]
	if b.errs[i] = o.Check(s.m.d.publisher.Limits.MaxBody); b.errs[i] != nil {
		b.behind.Note(o.Delivery, b.errs[i])
		return
	}
	if b.errs[i] = b.behind.Refuse(o.Delivery); b.errs[i] != nil {
		return
	}
	c, err := s.living(o.Delivery, now)
	wait := false
	if err == nil {
		wait, err = s.m.turn(c, o)
	}
	switch {
	case err != nil:
		b.errs[i] = err
		b.notices = append(b.notices, s.refuse(o.Delivery, now)...)
	case wait || c.it.saving && stores(c, o) || c.deferred == s.m.passes: // what is on its way must not come after it
		c.deferred = s.m.passes
		b.later = append(b.later, i)
	case isNote(c, o):
		s.apply(&settling{c: c, o: o})
	default:
		if b.work == nil {
			b.work, b.all = make([]*settling, len(b.ss)), make([]settling, len(b.ss))
		}
		b.work[i] = &b.all[i]
		b.work[i].o, b.work[i].c, b.work[i].pass = o, c, s.m.passes
		s.reserve(b.work[i], now)
	}
}

// finish stores what outcomes need, and lets them take effect.
func (b *batch) finish(ctx context.Context) {
	s, work, errs := b.s, b.work, b.errs
	together := s.emit(ctx, work, errs)
	s.store(ctx, work, errs, func(w *settling) *kgo.Record { return w.first })
	s.store(ctx, work, errs, func(w *settling) *kgo.Record { return w.then })
	s.m.mu.Lock()
	now := time.Now()
	for i, w := range work {
		switch {
		case w == nil:
		case errs[i] == nil && s.ours(w.c, now) && (w.o.Outcome == driver.Release || !s.m.failedAhead(w.c)):
			s.apply(w)
		case errs[i] == nil:
			errs[i] = w.overtaken()
			fallthrough
		default:
			s.m.keep(w)
		}
	}
	s.m.mu.Unlock()
	for _, w := range work { // a transaction stores its own
		if w != nil {
			s.m.saver.storeEnds(w.late)
		}
	}
	for i, w := range together {
		errs[i] = w.await(ctx)
	}
}

// causeAfter is why a message that is returned comes again.
func causeAfter(it *Item, o *driver.Settlement) driver.Cause {
	switch {
	case o.Outcome == driver.Retry:
		return driver.CauseRetry
	case o.Unseen:
		return it.cause
	}
	return driver.CauseReleased
}

// stores reports whether a message that is returned is stored.
func stores(c *claim, o *driver.Settlement) bool {
	return o.Outcome == driver.Retry || o.Outcome == driver.Release && (o.After > 0 || c.it.begun() != "")
}

// isNote reports whether an outcome needs nothing stored.
func isNote(c *claim, o *driver.Settlement) bool {
	return (o.Outcome == driver.Ack || o.Outcome == driver.Drop) && len(o.Emit) == 0 && c.it.logKey == ""
}

// ours reports whether a claim was surely still ours until now, so that what was stored for it takes effect.
func (s *subscription) ours(c *claim, now time.Time) bool {
	return !c.ended && !c.p.settleOver && !c.p.succeeded && s.m.vouched(now)
}

// overtaken is the answer to a settlement that was stored and does not take effect here: its partition went to another
// consumer meanwhile, or an earlier one of its key failed.
func (w *settling) overtaken() error {
	if w.first == nil && w.then == nil && len(w.o.Emit) == 0 {
		return cluster.ErrLost("the partition went to another consumer") // nothing was sent
	}
	return driver.NewError(driver.ErrUnknown, "the partition went to another consumer while the outcome was stored, or "+
		"an earlier message of its key could not be settled", "the message is delivered again if it came too late", nil)
}

// reserve keeps the claim of a settlement, so that the lease cannot end meanwhile. In strict order the held
// messages behind one that returns lose their tokens now: a later settlement of the same call is refused.
func (s *subscription) reserve(w *settling, now time.Time) {
	o, it, m := w.o, w.c.it, s.m
	w.c.settling, w.c.failed = w, false
	after := max(0, o.After)
	if o.Failure != nil {
		last := *o.Failure
		w.last = &last
		w.last.At, w.last.Instance, w.last.Attempt = now.UTC(), s.o.Instance, it.attempts+1
	}
	next := it.now()
	next.After, next.Begun, next.Tail, next.Cause = after, "", false, causeAfter(it, o)
	switch o.Outcome {
	case driver.Retry:
		history := it.history
		if o.Failure != nil {
			history = driver.AppendFailure(history, *w.last)
		}
		next.Tail, next.Attempts, next.History = !m.blocks(it), it.attempts+1, envelope.AppendHistory(nil, history...)
		w.first = m.retryRecord(it, next)
	case driver.Release:
		if stores(w.c, o) {
			w.first = m.retryRecord(it, next)
		}
	case driver.Dead:
		var last driver.Failure
		if w.last != nil {
			last = *w.last
		}
		w.first = m.deadRecord(it, last, s.o.Instance)
		fallthrough
	default:
		if it.logKey != "" {
			w.then = m.endOf(it)
		}
	}
	if m.order == driver.Strict && (o.Outcome == driver.Retry || o.Outcome == driver.Release) {
		m.returnBehind(it, false)
	}
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
	for n, err := range s.m.d.cluster.ProduceEach(ctx, records) {
		errs[at[n]] = err
	}
}

// keep lets the holder of a delivery have it that could not be settled.
func (m *member) keep(w *settling) {
	w.c.settling, w.c.failed = nil, true
	m.wakeAll() // others may wait for it
	if it := w.c.it; it != nil && it.unsaved {
		m.saver.suspect(it) // nothing was stored of it meanwhile
		m.saving.Give()
	}
}

// apply lets an outcome take effect whose records are stored.
func (s *subscription) apply(w *settling) {
	m, it := s.m, w.c.it
	m.end(w.c)
	after := max(0, w.o.After)
	if final := w.o.Outcome != driver.Retry && w.o.Outcome != driver.Release; final && it.logKey != "" && w.then == nil {
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
		it.p.tally.Died++
		m.remove(it)
	case driver.Retry:
		it.p.tally.Retried++
		it.attempts++
		if w.o.Failure != nil {
			it.history = driver.AppendFailure(it.history, *w.last)
		}
		it.cause, it.Tail = driver.CauseRetry, !m.blocks(it) // in strict order it never leaves the head of its key
		it.p.saved(it, w.first)
		m.back(it, after)
	case driver.Release:
		it.cause, it.Tail = causeAfter(it, w.o), false
		if w.first != nil {
			it.p.saved(it, w.first)
		}
		m.back(it, after)
	}
}

// back puts an item that was returned where it belongs.
func (m *member) back(it *Item, after time.Duration) {
	if after <= 0 {
		if it.Tail {
			m.toTail(it)
		}
		m.giveBack(it)
		return
	}
	it.due = time.Now().Add(after)
	m.wait(it)
	m.spill(it)
	if after > divertAfter {
		m.saver.divertFollowers(it)
	}
	m.alarmExpiry(it)
}
