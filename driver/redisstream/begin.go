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
		s.judge(c, runs[n], func(i int) *driver.Delivery { return ds[i] }, errs, func(_ int, t *token, letter byte) {
			if letter == 0 || letter == 'k' { // it has begun, or may have: Close speaks of it once more
				s.begun[t] = true
			}
		})
	}
	return errs
}
