package redisstream

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Extend makes leases end one full lease from now.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	byPart := map[*partition][]int{}
	for i, d := range ds {
		t, err := s.tokenOf(d)
		if errs[i] = err; err == nil {
			byPart[t.part] = append(byPart[t.part], i)
		}
	}
	for part, run := range byPart {
		for len(run) > 0 {
			n := min(len(run), settleAtOnce)
			s.extend(ctx, part, ds, run[:n], errs)
			run = run[n:]
		}
	}
	return errs
}

// byLease puts deliveries of one partition in order of their leases, and returns the arguments that tell of each lease
// and how many deliveries it has, which follow if they are to be between.
func byLease(run []int, at func(int) *token, between bool) (order []int, leases int, args []any) {
	rest := map[string][]int{}
	var names []string
	for _, i := range run {
		lease := at(i).lease
		if rest[lease] == nil {
			names = append(names, lease)
		}
		rest[lease] = append(rest[lease], i)
	}
	for _, lease := range names {
		args = append(args, lease, len(rest[lease]))
		if between {
			for _, i := range rest[lease] {
				args = append(args, at(i).id)
			}
		}
		order = append(order, rest[lease]...)
	}
	return order, len(names), args
}

func (s *subscription) extend(ctx context.Context, part *partition, ds []*driver.Delivery, run []int, errs []error) {
	begun := time.Now()
	order, leases, args := byLease(run, func(i int) *token { return ds[i].Token.(*token) }, true)
	c := &scriptCall{part: part, script: &s.d.scripts.extend,
		args: append([]any{s.o.Group, s.o.Lease.Milliseconds(), leases}, args...)}
	s.d.runAll(ctx, []*scriptCall{c})
	results := s.verdicts(c, len(order))
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range order {
		t := ds[i].Token.(*token)
		switch {
		case c.err != nil:
			errs[i] = c.err
		case results[n] != 'k':
			s.heard(t)
			errs[i] = ds[i].Lost(nil)
		default:
			t.until = begun.Add(s.o.Lease)
		}
	}
}
