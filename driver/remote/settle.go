package remote

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settleTimeout is how long a settlement waits for its answer, whatever becomes of its context.
const settleTimeout = 30 * time.Second

// Settle applies settlements, as many in one call as go into it.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs, handles := make([]error, len(ss)), make([]uint64, len(ss))
	session, at := s.current(), make([]int, 0, len(ss))
	var behind refusal.Behind
	for i := range ss {
		if handles[i], errs[i] = s.settleable(session, &ss[i], &behind); errs[i] == nil {
			at = append(at, i)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	for len(at) > 0 {
		n := fits(at, func(i int) int { return settlementSize(&ss[i]) }, s.d.client.Limit()/2)
		q := &frame.Settle{Session: session, Handles: chosen(handles, at[:n]), Settlements: chosen(ss, at[:n])}
		s.ask(ctx, frame.CallSettle, q, at[:n], errs)
		for _, i := range at[:n] {
			behind.Note(ss[i].Delivery, errs[i])
		}
		at = slices.DeleteFunc(at[n:], func(i int) bool {
			errs[i] = behind.Refuse(ss[i].Delivery)
			return errs[i] != nil
		})
	}
	s.forget(ss, errs)
	return errs
}

// settleable returns the handle of a settlement that can be sent.
func (s *subscription) settleable(session string, x *driver.Settlement, behind *refusal.Behind) (uint64, error) {
	t, err := s.spoken(session, x.Delivery)
	if err == nil {
		err = x.Check(s.d.caps.MaxBody)
	}
	if err == nil {
		err = behind.Refuse(x.Delivery)
	}
	if err != nil {
		behind.Note(x.Delivery, err)
		return 0, err
	}
	return t.handle, nil
}

// chosen are the elements at some indexes, which grow.
func chosen[T any](all []T, at []int) []T {
	if len(at) == len(all) {
		return all
	}
	out := make([]T, len(at))
	for i, n := range at {
		out[i] = all[n]
	}
	return out
}

// settlementSize is about how many bytes a settlement takes in a call.
func settlementSize(x *driver.Settlement) int {
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

// ask makes a call with one error for each of some indexes. A session that the gateway does not know any more holds
// nothing.
func (s *subscription) ask(ctx context.Context, call string, q frame.Value, at []int, errs []error) {
	var answer frame.Errors
	err := s.d.change(ctx, call, q, &answer)
	switch {
	case errors.Is(err, frame.ErrNoSession):
		err = driver.NewError(driver.ErrLeaseLost, "the server does not hold the delivery any more",
			"the message is delivered again", nil)
	case err == nil && len(answer) != len(at):
		err = driver.NewError(driver.ErrUnknown, "the server did not answer for each delivery", "try again", nil)
	}
	for i, n := range at {
		if errs[n] = err; err == nil {
			errs[n] = framecall.Away(answer[i], driver.ErrUnknown)
		}
	}
}
