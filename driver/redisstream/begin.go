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
	for at, all := range s.ByPart(ds, errs) {
		for run := range slices.Chunk(all, settleAtOnce) {
			args := []any{s.Options.Group, len(run)}
			for _, i := range run {
				t := ds[i].Token.(*token)
				args = append(args, t.id, t.lease)
			}
			calls = append(calls, &scriptCall{part: s.t.Parts[at], script: &s.d.scripts.begin, args: args, about: run})
		}
	}
	_ = s.d.runAll(ctx, calls)
	for _, c := range calls {
		s.judge(c, func(i int) *driver.Delivery { return ds[i] }, errs, func(_ int, t *token, letter byte) {
			if letter == 0 || letter == 'k' { // it has begun, or may have: Close speaks of it once more
				s.Begun[t] = true
			}
		})
	}
	return errs
}
