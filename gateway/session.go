package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// session is a subscription that is held for a client, with what the client holds of it.
type session struct {
	id    string
	owner string // the identity that opened it; nobody else uses it
	o     driver.SubscribeOptions
	sub   driver.Subscription
	by    sharing // of one that requests share

	mu      sync.Mutex
	held    holdings
	handles map[string]uint64 // by the text of the token; nil where nothing is taken away
	last    uint64            // handle
	wait    *receiving
	stopped uint64      // receives up to this number do not wait
	answer  handleRange // what the last receive has brought
	number  uint64      // of that receive
	revoked chan revocation
	calls   int // under way
	idle    *time.Timer
	ended   bool
}

// handleRange are handles that follow each other.
type handleRange struct{ first, end uint64 }

// receiving is a receive that waits.
type receiving struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// revocation is what the broker is about to take away.
type revocation struct {
	deliveries []*driver.Delivery
	until      time.Time
}

// forgetAfter is how long a delivery with a lost lease is remembered, for the late word of a holder that lives.
const forgetAfter = time.Minute

// receive returns what the client has not got yet, or waits for more. A client asks once at a time: a receive that
// still waits has lost its client, and ends.
func (s *session) receive(ctx context.Context, q *frame.Receive, poll time.Duration) (outgoing, error) {
	ctx, cancel := context.WithTimeout(ctx, poll)
	defer cancel()
	mine := &receiving{cancel: cancel, done: make(chan struct{})}
	if again := s.enter(q, mine); len(again.deliveries) > 0 {
		return again, nil
	}
	ds, err := s.sub.Receive(ctx, q.Max)
	got := s.leave(q, mine, ds)
	if len(got.deliveries) > 0 || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return got, nil
	}
	return got, err
}

// enter makes mine the receive that waits, after the one before it has ended; or returns what the client has not got
// yet.
func (s *session) enter(q *frame.Receive, mine *receiving) outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.wait != nil {
		s.end(s.wait)
	}
	if q.Got >= s.number {
		s.answer = handleRange{}
	}
	if again := s.outgoing(time.Now()); len(again.deliveries) > 0 {
		s.number = q.Number
		return again
	}
	if s.wait = mine; q.Number <= s.stopped {
		mine.cancel()
	}
	return outgoing{}
}

// outgoing is what a client is sent, as of a time.
type outgoing struct {
	deliveries []frame.Delivery
	at         time.Time
}

// outgoing is what the client has not got yet, without what was lost before a time, on its way. The lock is held.
func (s *session) outgoing(lost time.Time) outgoing {
	out := outgoing{at: time.Now(), deliveries: make([]frame.Delivery, 0, s.answer.end-s.answer.first)}
	for handle := s.answer.first; handle < s.answer.end; handle++ {
		if h := s.held.find(handle); h != nil && !h.until.Before(lost) {
			out.deliveries = append(out.deliveries, frame.Delivery{Delivery: h.delivery, Handle: handle,
				Left: h.until.Sub(out.at)})
		}
	}
	return out
}

// end ends a receive that waits. The lock is held before and after, and not meanwhile.
func (s *session) end(w *receiving) {
	w.cancel()
	s.mu.Unlock()
	<-w.done
	s.mu.Lock()
}

// leave notes what a receive has brought, until a later one says that it arrived.
func (s *session) leave(q *frame.Receive, mine *receiving, ds []*driver.Delivery) outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = nil
	close(mine.done)
	if len(ds) == 0 {
		return outgoing{at: time.Now()}
	}
	first := s.hold(ds)
	s.answer, s.number = handleRange{first, s.last + 1}, q.Number
	return s.outgoing(time.Time{})
}

// hold gives deliveries their handles, from the one that it returns on. The lock is held.
func (s *session) hold(ds []*driver.Delivery) (first uint64) {
	s.forget()
	first = s.last + 1
	for _, d := range ds {
		s.last++
		s.held.add(s.last, d)
		if s.handles != nil {
			s.handles[d.Token.String()] = s.last
		}
	}
	return first
}

// forget drops deliveries whose leases were lost long ago, once there are more than can be held.
func (s *session) forget() {
	if s.held.n <= s.o.MaxInflight {
		return
	}
	for _, handle := range s.held.lostBefore(time.Now().Add(-forgetAfter)) {
		s.drop(handle)
	}
}

func (s *session) drop(handle uint64) {
	if h := s.held.find(handle); h != nil && s.handles != nil {
		delete(s.handles, h.delivery.Token.String())
	}
	s.held.remove(handle)
}

// stop ends the wait of a receive, which may not have arrived yet, and returns when it has ended.
func (s *session) stop(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = max(s.stopped, number)
	if s.wait != nil {
		s.end(s.wait)
	}
}

// deliveries returns what handles stand for; nil for one that stands for nothing any more.
func (s *session) deliveries(handles []uint64) []*driver.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := make([]*driver.Delivery, len(handles))
	for i, n := range handles {
		if h := s.held.find(n); h != nil {
			ds[i] = h.delivery
		}
	}
	return ds
}

// extend extends leases, with one error each.
func (s *session) extend(ctx context.Context, handles []uint64) []error {
	start := time.Now()
	errs := s.each(handles, func(ds []*driver.Delivery) []error { return s.sub.Extend(ctx, ds) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range handles {
		switch h := s.held.find(n); {
		case h == nil:
		case errs[i] == nil:
			h.until = start.Add(s.o.Lease)
		case errors.Is(errs[i], driver.ErrLeaseLost):
			s.drop(n) // its late word has been heard
		}
	}
	return errs
}

// begin says that handlers are about to start, with one error each.
func (s *session) begin(ctx context.Context, handles []uint64) []error {
	return s.each(handles, func(ds []*driver.Delivery) []error { return s.sub.Begin(ctx, ds) })
}

// each calls f with the deliveries that are known, and says of the others that their leases are lost.
func (s *session) each(handles []uint64, f func([]*driver.Delivery) []error) []error {
	errs := make([]error, len(handles))
	var known []*driver.Delivery
	var at []int
	for i, d := range s.deliveries(handles) {
		if d == nil {
			errs[i] = errNotHeld()
			continue
		}
		known, at = append(known, d), append(at, i)
	}
	if len(known) > 0 {
		for i, err := range f(known) {
			errs[at[i]] = err
		}
	}
	return errs
}

// settle applies settlements, with one error each, and takes over ss. They stand even if the client is gone meanwhile.
func (s *session) settle(ctx context.Context, handles []uint64, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	known, at := ss[:0], make([]int, 0, len(ss)) // known is never ahead of what is read
	for i, d := range s.deliveries(handles) {
		if d == nil {
			errs[i] = errNotHeld()
			continue
		}
		ss[i].Delivery = d
		known, at = append(known, ss[i]), append(at, i)
	}
	if len(known) > 0 {
		for i, err := range s.sub.Settle(context.WithoutCancel(ctx), known) {
			errs[at[i]] = err
		}
	}
	s.settled(handles, errs)
	return errs
}

// settled drops what the client has no more to say about.
func (s *session) settled(handles []uint64, errs []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range handles {
		if errs[i] == nil || errors.Is(errs[i], driver.ErrLeaseLost) {
			s.drop(n)
		}
	}
}

func errNotHeld() error {
	return driver.NewError(driver.ErrLeaseLost, "the gateway holds no such delivery for this client",
		"extend leases in time; the message is delivered again", nil)
}
