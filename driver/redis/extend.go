package redis

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Extend makes leases end one full lease from now. Deliveries of one lease that are not all extended get a lease of
// their own.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	byShard := make(map[int][]int)
	for i, d := range ds {
		t, err := s.tokenOf(d)
		if errs[i] = err; err == nil {
			byShard[t.shard] = append(byShard[t.shard], i)
		}
	}
	for shard, all := range byShard {
		for run := range slices.Chunk(all, settleAtOnce) {
			s.extend(ctx, shard, ds, run, errs)
		}
	}
	return errs
}

func (s *subscription) extend(ctx context.Context, shard int, ds []*driver.Delivery, run []int, errs []error) {
	before := time.Now()
	args := make([]any, 0, 3+2*len(run))
	args = append(args, s.o.Lease.Milliseconds(), strconv.FormatUint(s.d.counter.Add(1), 36), len(run))
	s.mu.Lock()
	for _, i := range run {
		t := ds[i].Token.(*token)
		args = append(args, t.lease, t.seq)
	}
	s.mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.extend, s.keys[shard], args...)
	leases := texts(reply, 0)
	if err == nil && len(leases) != len(run) {
		err = errShape("extend", reply)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		switch {
		case err != nil:
			errs[i] = err
		case leases[n] == "":
			delete(s.held, t)
			errs[i] = ds[i].Lost(nil)
		default:
			if leases[n] != t.lease { // what else is in that is not known
				t.leaveBatch()
				t.lease = leases[n]
			}
			t.until = before.Add(s.o.Lease)
		}
	}
}
