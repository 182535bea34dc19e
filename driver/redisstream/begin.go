package redisstream

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// Begin records that handlers are about to start: one script for each partition, in one round trip.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	var calls []*scriptCall
	var runs [][]int
	for part, all := range s.byPart(ds, errs) {
		for run := range slices.Chunk(all, settleAtOnce) {
			args := []any{s.o.Group, len(run)}
			for _, i := range run {
				t := ds[i].Token.(*token)
				args = append(args, t.id, t.lease)
			}
			calls, runs = append(calls, &scriptCall{part: part, script: &s.d.scripts.begin, args: args}), append(runs, run)
		}
	}
	s.d.runAll(ctx, calls)
	for n, c := range calls {
		s.noteBegun(c, ds, runs[n], errs)
	}
	return errs
}

// noteBegun reads the answer to one call. What has begun, or may have, is spoken of once more when the subscription is
// closed.
func (s *subscription) noteBegun(c *scriptCall, ds []*driver.Delivery, run []int, errs []error) {
	results := s.verdicts(c, len(run))
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		switch {
		case c.err != nil:
			errs[i] = c.err
			s.begun[t] = true
		case results[n] == 'k':
			s.begun[t] = true
		default:
			errs[i] = ds[i].Lost(nil)
		}
	}
}
