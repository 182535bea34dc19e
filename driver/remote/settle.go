package remote

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// settleTimeout is how long a settlement waits for its answer, whatever becomes of its context.
const settleTimeout = 30 * time.Second

// Settle applies settlements, as many in one call as go into it.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	q := &frame.Settle{Session: s.current(), Settlements: ss, Handles: make([]uint64, 0, len(ss))}
	at := make([]int, 0, len(ss))
	for i := range ss {
		t, err := s.spoken(q.Session, ss[i].Delivery)
		if err == nil {
			err = ss[i].Check(s.d.caps.MaxBody)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		q.Handles, at = append(q.Handles, t.handle), append(at, i)
	}
	if len(at) < len(ss) {
		q.Settlements = chosen(ss, at)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	for begin := 0; begin < len(at); {
		end := begin + fits(q.Settlements[begin:], settlementSize, s.d.client.Limit()/2)
		part := &frame.Settle{Session: q.Session, Handles: q.Handles[begin:end], Settlements: q.Settlements[begin:end]}
		s.ask(ctx, frame.CallSettle, part, at[begin:end], errs)
		begin = end
	}
	s.forget(ss, errs)
	return errs
}

// chosen are the settlements at some indexes.
func chosen(ss []driver.Settlement, at []int) []driver.Settlement {
	out := make([]driver.Settlement, len(at))
	for i, n := range at {
		out[i] = ss[n]
	}
	return out
}

// settlementSize is about how many bytes a settlement takes in a call.
func settlementSize(x driver.Settlement) int {
	n := 64
	if x.Failure != nil {
		n += len(x.Failure.Error) + len(x.Failure.Stack) + len(x.Failure.Reason)
	}
	for _, m := range x.Emit {
		n += messageSize(m)
	}
	return n
}

// Begin records that handlers are about to start.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	return s.each(ctx, frame.CallBegin, ds)
}

// Extend makes leases last one full lease from now.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	return s.each(ctx, frame.CallExtend, ds)
}

// each makes a call about deliveries, and returns one error for each.
func (s *subscription) each(ctx context.Context, call string, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	q := &frame.Held{Session: s.current()}
	var at []int
	for i, d := range ds {
		t, err := s.spoken(q.Session, d)
		if err != nil {
			errs[i] = err
			continue
		}
		q.Handles, at = append(q.Handles, t.handle), append(at, i)
	}
	if len(at) > 0 {
		s.ask(ctx, call, q, at, errs)
	}
	return errs
}

// spoken returns the token of a delivery, if this session has received it.
func (s *subscription) spoken(session string, d *driver.Delivery) (*token, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	t, ours := d.Token.(*token)
	if !ours || t.session != session {
		return nil, d.Lost(nil)
	}
	return t, nil
}

func (s *subscription) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// ask makes a call with one error for each of some indexes. A session that the gateway does not know any more holds nothing.
func (s *subscription) ask(ctx context.Context, call string, q frame.Value, at []int, errs []error) {
	var answer frame.Errors
	err := s.d.change(ctx, call, q, &answer)
	switch {
	case errors.Is(err, frame.ErrNoSession):
		err = driver.NewError(driver.ErrLeaseLost, "the server does not hold the delivery any more", "the message is delivered again", nil)
	case err == nil && len(answer) != len(at):
		err = driver.NewError(driver.ErrUnknown, "the server did not answer for each delivery", "try again", nil)
	}
	for i, n := range at {
		if errs[n] = err; err == nil {
			errs[n] = framecall.Away(answer[i], driver.ErrUnknown)
		}
	}
}
