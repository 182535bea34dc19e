package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Extend makes leases end one full lease from now. Deliveries of one lease that are not all extended get a lease of
// their own.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	for shard, all := range s.ByPart(ds, errs) {
		for _, run := range s.wholeLeases(ds, all) {
			s.extend(ctx, shard, ds, run, errs)
		}
	}
	return errs
}

// wholeLeases divides deliveries into scripts, so that those of one lease are in the same: extending a part of a lease
// splits it.
func (s *subscription) wholeLeases(ds []*driver.Delivery, all []int) (runs [][]int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	lease := func(i int) string { return ds[i].Token.(*token).lease }
	slices.SortStableFunc(all, func(a, b int) int { return strings.Compare(lease(a), lease(b)) })
	start := 0
	for end := 1; end <= len(all); end++ {
		if end == len(all) || end-start >= settleAtOnce && lease(all[end]) != lease(all[end-1]) {
			runs, start = append(runs, all[start:end]), end
		}
	}
	return runs
}

func (s *subscription) extend(ctx context.Context, shard int, ds []*driver.Delivery, run []int, errs []error) {
	before := time.Now()
	args := make([]any, 0, 3+2*len(run))
	args = append(args, s.Options.Lease.Milliseconds(), strconv.FormatUint(s.d.shell.Count(), 36), len(run))
	s.Mu.Lock()
	for _, i := range run {
		t := ds[i].Token.(*token)
		args = append(args, t.lease, t.seq)
	}
	s.Mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.extend, s.keys[shard], args...)
	leases := reply.Texts(0)
	if err == nil && len(leases) != len(run) {
		err = reply.ErrShape("extend")
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		switch {
		case err != nil:
			errs[i] = err
		case leases[n] == "":
			s.drop(t)
			errs[i] = ds[i].Lost(nil)
		default:
			if leases[n] != t.lease { // what else is in that is not known
				t.leaveBatch()
				t.lease = leases[n]
			}
			t.until = before.Add(s.Options.Lease)
		}
	}
}
