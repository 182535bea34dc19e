package consumer

import (
	"context"
	"slices"
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

	pass  uint64          // which step of which call it is part of
	emits *publisher.Call // in one transaction with the outcome
	over  chan error      // what became of the transaction

	// what a message that is returned comes back with
	attempts int
	history  []driver.Failure
	cause    driver.Cause
	tail     bool
}

// returns reports whether the message comes again.
func (w *settling) returns() bool {
	return w.o.Outcome == driver.Retry || w.o.Outcome == driver.Release
}

// Settle applies settlements. What an outcome needs is durably produced first; only then is its offset done. Of a
// strict key none stands before those of the messages ahead: it waits for them.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.StorePatience)
	defer cancel()
	b := batch{s: s, ss: ss, errs: make([]error, len(ss))}
	changed := b.settle(ctx, nil)
	for len(b.later) > 0 {
		select {
		case <-changed:
			changed = b.settle(ctx, b.later)
		case <-ctx.Done():
			for _, i := range b.later {
				b.errs[i] = errNotInTurn()
			}
			return b.errs
		}
	}
	return b.errs
}

// batch is the settlements of a call.
type batch struct {
	s       *subscription
	ss      []driver.Settlement
	errs    []error
	work    []*settling // what more is needed for; nil where nothing is
	all     []settling
	later   []int          // those that wait for others
	behind  refusal.Behind // what could not even be tried; turn knows what failed
	notices []*kgo.Record  // see lease.go
}

// settle settles what need not wait, of all or of those that are left, and returns what is closed when something has
// changed for the others.
func (b *batch) settle(ctx context.Context, left []int) (changed <-chan struct{}) {
	m := b.s.m
	b.work, b.all, b.later, b.notices = nil, nil, nil, nil
	m.mu.Lock()
	now := time.Now()
	b.s.lapse(now)
	m.passes++
	for i := range b.ss {
		if _, waited := slices.BinarySearch(left, i); waited || left == nil {
			b.start(i, now)
		}
	}
	if len(b.later) > 0 {
		changed = m.await()
	}
	m.mu.Unlock()
	m.saver.tell(ctx, b.notices)
	if b.work != nil {
		b.finish(ctx)
	}
	return changed
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
	case isEnd(o) && c.it.logKey == "":
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
		if w == nil { // a transaction settles its own
			continue
		}
		if errs[i] == nil && (!s.ours(w.c, now) || w.o.Outcome != driver.Release && s.m.failedAhead(w.c)) {
			errs[i] = w.overtaken()
		}
		if errs[i] == nil {
			s.apply(w)
		} else {
			s.m.keep(w)
		}
	}
	s.m.mu.Unlock()
	for i, w := range together {
		errs[i] = w.await(ctx)
	}
}

// stores reports whether a message that is returned is stored.
func stores(c *claim, o *driver.Settlement) bool {
	return o.Outcome == driver.Retry || o.Outcome == driver.Release && (o.After > 0 || c.it.losses().begun != "")
}

// isEnd reports whether an outcome needs nothing but the end of its message: a note, or a record in the retry log.
func isEnd(o *driver.Settlement) bool {
	return (o.Outcome == driver.Ack || o.Outcome == driver.Drop) && len(o.Emit) == 0
}

// ours reports whether a claim was surely still ours until now, so that what was stored for it takes effect.
func (s *subscription) ours(c *claim, now time.Time) bool {
	return !c.ended && !c.p.over && !c.p.succeeded && s.m.vouched(now)
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

// reserve keeps the claim of a settlement, so that the lease cannot end meanwhile. In strict order the leased
// items behind one that returns lose their tokens now: a later settlement of the same call is refused.
func (s *subscription) reserve(w *settling, now time.Time) {
	o, it, m := w.o, w.c.it, s.m
	w.c.settling, w.c.failed = w, false
	if o.Failure != nil {
		last := *o.Failure
		w.last = &last
		w.last.At, w.last.Instance, w.last.Attempt = now.UTC(), s.o.Instance, it.attempts+1
	}
	if !w.returns() {
		if o.Outcome == driver.Dead {
			w.first = m.deadRecord(it, w.last, s.o.Instance)
		}
		if it.logKey != "" {
			w.then = m.endOf(it)
		}
		return
	}
	w.attempts, w.history, w.cause = it.attempts, it.history, it.cause
	switch {
	case o.Outcome == driver.Retry:
		w.attempts++
		w.cause, w.tail = driver.CauseRetry, !m.blocks(it) // in strict order it never leaves the head of its key
		if w.last != nil {
			w.history = driver.AppendFailure(w.history, *w.last)
		}
	case !o.Unseen:
		w.cause = driver.CauseReleased
	}
	if stores(w.c, o) {
		next := it.now()
		next.After, next.Begun, next.Attempts, next.Cause, next.Tail = max(0, o.After), "", w.attempts, w.cause, w.tail
		next.History = envelope.AppendHistory(nil, w.history...)
		w.first = m.retryRecord(it, next)
	}
	if m.order == driver.Strict {
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
		it.p.suspect(it) // nothing was stored of it meanwhile
	}
}

// apply lets an outcome take effect whose records are stored.
func (s *subscription) apply(w *settling) {
	m, it := s.m, w.c.it
	m.end(w.c)
	switch w.o.Outcome {
	case driver.Ack:
		it.p.tally.Acked++
	case driver.Drop:
		it.p.tally.Dropped++
	case driver.Dead:
		it.p.tally.Died++
	case driver.Retry:
		it.p.tally.Retried++
	}
	if !w.returns() {
		if it.logKey != "" && w.then == nil { // a lost lease was stored meanwhile
			m.saver.endLater(m.endOf(it))
		}
		m.remove(it)
		return
	}
	it.attempts, it.history, it.cause, it.Tail = w.attempts, w.history, w.cause, w.tail
	if w.first != nil {
		it.p.saved(it, w.first)
	}
	m.back(it, max(0, w.o.After))
}

// back puts an item that was returned where it belongs.
func (m *member) back(it *Item, after time.Duration) {
	it.p.dirty = true // that it was given back is committed too
	if after <= 0 {
		m.becomeDue(it)
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
