package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settleAtOnce bounds one script.
const settleAtOnce = 250

// Settle applies each settlement as one step, in order: one script for those of one shard that follow each other.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := s.Member.Settle(ctx, ss, s.d.caps.MaxBody, s.emit, s.settleRun)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Gate.Fed() {
		s.Gate.Announce()
	}
	return errs
}

// settleRun sends settlements, those of one shard that follow each other in one script.
func (s *subscription) settleRun(ctx context.Context, ss []driver.Settlement, run []int, errs []error,
	behind *refusal.Behind) {
	shard := func(i int) int { return ss[i].Delivery.Token.(*token).shard }
	for len(run) > 0 {
		n := 1
		for n < len(run) && n < settleAtOnce && shard(run[n]) == shard(run[0]) {
			n++
		}
		redisshell.Behind(ss, run[:n], errs, behind, func(some []int) { s.settle(ctx, ss, some, errs) })
		run = run[n:]
	}
}

// unclaim gives back deliveries that were claimed and cannot be handed out.
func (s *subscription) unclaim(ctx context.Context, ds []*driver.Delivery) {
	ss, run := make([]driver.Settlement, len(ds)), make([]int, len(ds))
	for i, d := range ds {
		ss[i], run[i] = driver.Settlement{Delivery: d, Outcome: driver.Release, Unseen: true}, i
	}
	s.settleRun(ctx, ss, run, make([]error, len(ds)), &refusal.Behind{})
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
	delivery := func(i int) *driver.Delivery { return ss[i].Delivery }
	s.Judge(run, results, err, delivery, errs, func(_ int, t *token, letter byte) {
		if letter != 0 {
			s.Gate.Refilled()
			s.drop(t)
		}
	})
}

// drop notes that a delivery is not held any more. The caller has the lock.
func (s *subscription) drop(t *token) {
	delete(s.Held, t)
	delete(s.Begun, t)
	t.leaveBatch()
}

func (s *subscription) sendSettle(ctx context.Context, ss []driver.Settlement, run []int) (string, error) {
	shard := ss[run[0]].Delivery.Token.(*token).shard
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	args := make([]any, 0, 2+6*len(run))
	args = append(args, r.name(), len(run))
	s.Mu.Lock()
	for _, i := range run {
		x := &ss[i]
		t := x.Delivery.Token.(*token)
		args = append(args, t.lease, t.seq, redisshell.Outcome(x), redisconn.Milliseconds(x.After),
			redisshell.Failure(x, s.Options.Instance), s.Options.Instance)
	}
	s.Mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.settle, s.keys[shard], args...)
	if err != nil {
		return "", err
	}
	results := reply.Text(0)
	if len(results) != len(run) {
		return "", reply.ErrShape("settle")
	}
	s.Ended(shard, reply.Texts(1), s.drop)
	return results, nil
}
