package redis

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settlePatience bounds a settlement, which stands even when its caller gives up.
const settlePatience = 30 * time.Second

// settleAtOnce bounds one script.
const settleAtOnce = 250

// Settle applies each settlement as one step, in order: one script for those of one shard that follow each other.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	var run []int // settlements of one shard that wait to be sent
	var behind refusal.Behind
	flush := func() {
		if len(run) > 0 {
			s.settle(ctx, ss, run, errs)
			for _, i := range run {
				behind.Note(ss[i].Delivery, errs[i])
			}
			run = run[:0]
		}
	}
	for i := range ss {
		t, err := s.checked(&ss[i])
		if err == nil && len(run) > 0 && (len(run) >= settleAtOnce || len(ss[i].Emit) > 0 ||
			ss[run[0]].Delivery.Token.(*token).shard != t.shard) {
			flush()
		}
		if err == nil {
			err = behind.Refuse(ss[i].Delivery)
		}
		done := false
		if err == nil && len(ss[i].Emit) > 0 {
			done, err = s.emit(ctx, t, &ss[i])
		}
		if errs[i] = err; err != nil {
			behind.Note(ss[i].Delivery, err)
		} else if !done {
			run = append(run, i)
		}
	}
	flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate.Fed() {
		s.gate.Announce()
	}
	return errs
}

// checked returns the token of a settlement that can be sent.
func (s *subscription) checked(x *driver.Settlement) (*token, error) {
	if err := x.Check(s.d.caps.MaxBody); err != nil {
		return nil, err
	}
	return s.tokenOf(x.Delivery)
}

// tokenOf returns the token of a delivery that this subscription received.
func (s *subscription) tokenOf(d *driver.Delivery) (*token, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	t, ok := d.Token.(*token)
	s.mu.Lock()
	err := s.gate.RefuseSettle()
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case !ok || t.s != s:
		return nil, d.Lost(nil)
	}
	return t, nil
}

// unclaim gives back deliveries that were claimed and cannot be handed out.
func (s *subscription) unclaim(ctx context.Context, ds []*driver.Delivery) {
	for len(ds) > 0 {
		n := 1
		for n < len(ds) && n < settleAtOnce && ds[n].Token.(*token).shard == ds[0].Token.(*token).shard {
			n++
		}
		ss, run := make([]driver.Settlement, n), make([]int, n)
		for i, d := range ds[:n] {
			ss[i], run[i] = driver.Settlement{Delivery: d, Outcome: driver.Release, Unseen: true}, i
		}
		s.settle(ctx, ss, run, make([]error, n))
		ds = ds[n:]
	}
}

// settle sends settlements of one shard.
func (s *subscription) settle(ctx context.Context, ss []driver.Settlement, run []int, errs []error) {
	if done, err := s.ackAll(ctx, ss, run); done {
		for _, i := range run {
			errs[i] = err
		}
		return
	}
	results, err := s.sendSettle(ctx, ss, run)
	for n, i := range run {
		switch {
		case err != nil:
			errs[i] = err
		case results[n] != 'k':
			errs[i] = ss[i].Delivery.Lost(nil)
		}
		if err == nil {
			s.mu.Lock()
			s.drop(ss[i].Delivery.Token.(*token))
			s.mu.Unlock()
		}
	}
}

// drop notes that a delivery is not held any more. The caller has the lock.
func (s *subscription) drop(t *token) {
	delete(s.held, t)
	delete(s.begun, t)
	t.leaveBatch()
}

func (s *subscription) sendSettle(ctx context.Context, ss []driver.Settlement, run []int) (string, error) {
	shard := ss[run[0]].Delivery.Token.(*token).shard
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	args := make([]any, 0, 2+6*len(run))
	args = append(args, r.name(), len(run))
	s.mu.Lock()
	for _, i := range run {
		x := &ss[i]
		t := x.Delivery.Token.(*token)
		args = append(args, t.lease, t.seq, redisshell.Outcome(x), redisconn.Milliseconds(x.After),
			redisshell.Failure(x, s.o.Instance), s.o.Instance)
	}
	s.mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.settle, s.keys[shard], args...)
	if err != nil {
		return "", err
	}
	results := reply.Text(0)
	if len(results) != len(run) {
		return "", reply.ErrShape("settle")
	}
	s.ended(shard, reply.Texts(1))
	s.mu.Lock()
	s.gate.Refilled()
	s.mu.Unlock()
	return results, nil
}

// ended notes that deliveries were returned together with others of their key.
func (s *subscription) ended(shard int, seqs []string) {
	if len(seqs) == 0 {
		return
	}
	gone := map[string]bool{}
	for _, q := range seqs {
		gone[q] = true
	}
	s.mu.Lock()
	for t := range s.held {
		if t.shard == shard && gone[t.seq] {
			s.drop(t)
		}
	}
	s.mu.Unlock()
}
