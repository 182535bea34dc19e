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
	for shard, all := range s.byShard(ds, errs) {
		for run := range slices.Chunk(all, settleAtOnce) {
			s.begin(ctx, shard, ds, run, errs)
		}
	}
	return errs
}

// byShard sorts deliveries that this subscription received, and notes what is wrong with the others.
func (s *subscription) byShard(ds []*driver.Delivery, errs []error) map[int][]int {
	shards := make(map[int][]int)
	for i, d := range ds {
		t, err := s.tokenOf(d)
		if errs[i] = err; err == nil {
			shards[t.shard] = append(shards[t.shard], i)
		}
	}
	return shards
}

// begunMost bounds of how many deliveries Close says that their holder lives, if nobody settled them.
const begunMost = 10_000

func (s *subscription) begin(ctx context.Context, shard int, ds []*driver.Delivery, run []int, errs []error) {
	args := make([]any, 0, 2*len(run))
	s.mu.Lock()
	if len(s.begun) >= begunMost {
		maps.DeleteFunc(s.begun, func(t *token, _ bool) bool { return !s.held[t] })
	}
	for _, i := range run {
		t := ds[i].Token.(*token)
		args = append(args, t.lease, t.seq)
		s.begun[t] = true // also if the answer is lost
	}
	s.mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.begin, s.keys[shard], args...)
	results := reply.Text(0)
	if err == nil && len(results) != len(run) {
		err = reply.ErrShape("begin")
	}
	for n, i := range run {
		switch {
		case err != nil:
			errs[i] = err
		case results[n] != 'k':
			errs[i] = ds[i].Lost(nil)
		}
	}
}

// Drain says that Receive is not called again. Leases are of single messages, so nothing else is reserved; what Receive
// has not returned goes back.
func (s *subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.gate.Drain() {
		s.mu.Unlock()
		return nil
	}
	s.drains.Add(1)
	defer s.drains.Done()
	s.mu.Unlock()
	redisshell.Await(ctx, &s.claims)
	return s.giveBackUnseen(ctx)
}

// giveBackUnseen returns what was claimed and never handed out, as if it had not been claimed. What could not be
// returned is kept for Close.
func (s *subscription) giveBackUnseen(ctx context.Context) error {
	s.mu.Lock()
	stray, unknown := s.stray, s.unknown
	s.stray, s.unknown = nil, nil
	s.mu.Unlock()
	s.unclaim(ctx, stray)
	claims := make([][]any, len(s.keys))
	for _, a := range unknown {
		claims[a.shard] = append(claims[a.shard], "u"+a.token)
	}
	err := s.leave(ctx, claims, nil, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stray = append(s.stray, slices.DeleteFunc(stray, func(d *driver.Delivery) bool {
		return !s.held[d.Token.(*token)]
	})...)
	if err != nil {
		s.unknown = append(s.unknown, unknown...)
	}
	return err
}
