package redis

import (
	"context"
	"errors"
	"slices"
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
	args := make([]any, 0, 2+3*len(run))
	args = append(args, s.o.Lease.Milliseconds(), len(run))
	fresh := make([]string, len(run))
	splits := map[string]string{} // one for each lease: see the script
	s.mu.Lock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		if splits[t.lease] == "" {
			splits[t.lease] = s.d.newToken()
		}
		fresh[n] = splits[t.lease]
		args = append(args, t.lease, t.seq, fresh[n])
	}
	s.mu.Unlock()
	reply, err := s.d.run(ctx, &s.d.scripts.extend, s.keys[shard], args...)
	results := text(reply, 0)
	if err == nil && len(results) != len(run) {
		err = errShape("extend", reply)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		switch {
		case errors.Is(err, driver.ErrUnknown):
			t.maybe = fresh[n]
			errs[i] = err
		case err != nil:
			errs[i] = err
		case results[n] == 'l' && t.maybe != "":
			t.lease, t.maybe = t.maybe, ""
			errs[i] = driver.NewError(driver.ErrNotApplied, "the lease moved", "extend again", nil)
		case results[n] == 'l':
			delete(s.held, t)
			errs[i] = errLost(ds[i])
		default:
			if results[n] == 's' {
				t.leaveBatch()
				t.lease, t.maybe = fresh[n], ""
			}
			t.until = before.Add(s.o.Lease)
		}
	}
}
