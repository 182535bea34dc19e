package redisstream

import (
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Extend makes leases end one full lease from now.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	for at, all := range s.ByPart(ds, errs) {
		for run := range slices.Chunk(all, settleAtOnce) {
			s.extend(ctx, s.t.Parts[at], ds, run, errs)
		}
	}
	return errs
}

// byLease divides deliveries of one partition by their leases, each in the order of the claim as far as that matters.
func byLease(run []int, at func(int) *token) (leases [][]int) {
	place := map[string]int{}
	for _, i := range run {
		n, known := place[at(i).lease]
		if !known {
			n = len(leases)
			place[at(i).lease], leases = n, append(leases, nil)
		}
		leases[n] = append(leases[n], i)
	}
	for _, of := range leases {
		slices.SortStableFunc(of, func(a, b int) int { return at(a).place - at(b).place })
	}
	return leases
}

func (s *subscription) extend(ctx context.Context, part *partition, ds []*driver.Delivery, run []int, errs []error) {
	begun := time.Now()
	at := func(i int) *token { return ds[i].Token.(*token) }
	leases := byLease(run, at)
	order, args := make([]int, 0, len(run)), []any{s.Options.Group, s.Options.Lease.Milliseconds(), len(leases)}
	for _, of := range leases {
		args = append(args, at(of[0]).lease, len(of))
		for _, i := range of {
			args = append(args, at(i).id)
		}
		order = append(order, of...)
	}
	c := &scriptCall{part: part, script: &s.d.scripts.extend, args: args, about: order}
	_ = s.d.runAll(ctx, []*scriptCall{c})
	s.judge(c, func(i int) *driver.Delivery { return ds[i] }, errs, func(_ int, t *token, letter byte) {
		switch letter {
		case 0:
		case 'k':
			t.until = begun.Add(s.Options.Lease)
		default:
			s.heard(t)
		}
	})
}
