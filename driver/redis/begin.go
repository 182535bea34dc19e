package redis

import (
	"context"
	"maps"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Begin records that handlers are about to start: one script for those of one shard.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	for shard, all := range s.ByPart(ds, errs) {
		for run := range slices.Chunk(all, settleAtOnce) {
			s.begin(ctx, shard, ds, run, errs)
		}
	}
	return errs
}

// begunMost bounds of how many deliveries Close says that their holder lives, if nobody settled them.
const begunMost = 10_000

func (s *subscription) begin(ctx context.Context, shard int, ds []*driver.Delivery, run []int, errs []error) {
	args := make([]any, 0, 2*len(run))
	s.Mu.Lock()
	if len(s.Begun) >= begunMost {
		maps.DeleteFunc(s.Begun, func(t *token, _ bool) bool { return !s.Held[t] })
	}
	for _, i := range run {
		t := ds[i].Token.(*token)
		args = append(args, t.lease, t.seq)
		s.Begun[t] = true // also if the answer is lost
	}
	s.Mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.begin, s.keys[shard], args...)
	results := reply.Text(0)
	if err == nil && len(results) != len(run) {
		err = reply.ErrShape("begin")
	}
	s.Judge(run, results, err, func(i int) *driver.Delivery { return ds[i] }, errs, func(int, *token, byte) {})
}

// Drain says that Receive is not called again. Leases are of single messages, so nothing else is reserved; what Receive
// has not returned goes back.
func (s *subscription) Drain(ctx context.Context) error {
	s.Mu.Lock()
	if !s.Gate.Drain() {
		s.Mu.Unlock()
		return nil
	}
	s.drains.Add(1)
	defer s.drains.Done()
	s.Mu.Unlock()
	redisshell.Await(ctx, &s.claims)
	return s.giveBackUnseen(ctx)
}

// giveBackUnseen returns what was claimed and never handed out, as if it had not been claimed. What could not be
// returned is kept for Close.
func (s *subscription) giveBackUnseen(ctx context.Context) error {
	s.Mu.Lock()
	unseen, unknown := s.unseen, s.unknown
	s.unseen, s.unknown = nil, nil
	s.Mu.Unlock()
	s.unclaim(ctx, unseen)
	claims := make([][]any, len(s.keys))
	for _, a := range unknown {
		claims[a.shard] = append(claims[a.shard], "u"+a.token)
	}
	err := s.leave(ctx, claims, make([][]any, len(s.keys)), "")
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.unseen = append(s.unseen, slices.DeleteFunc(unseen, func(d *driver.Delivery) bool {
		return !s.Held[d.Token.(*token)]
	})...)
	if err != nil {
		s.unknown = append(s.unknown, unknown...)
	}
	return err
}
