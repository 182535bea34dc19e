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
		s.extend(ctx, part, ds, run, errs)
	}
	return errs
}

func (s *subscription) extend(ctx context.Context, part *partition, ds []*driver.Delivery, run []int, errs []error) {
	begun := time.Now()
	args := []any{s.o.Group, s.o.Lease.Milliseconds(), len(run)}
	for _, i := range run {
		t := ds[i].Token.(*token)
		args = append(args, t.id, t.lease)
	}
	reply, err := part.run(ctx, &s.d.scripts.extend, args...)
	results := text(reply, 1)
	if err == nil && text(reply, 0) == "stale" {
		err = s.gone(errStale)
	} else if err == nil && len(results) != len(run) {
		err = errShape("extend", reply)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range run {
		t := ds[i].Token.(*token)
		switch {
		case err != nil:
			errs[i] = err
		case results[n] != 'k':
			delete(s.held, t)
			errs[i] = errLost(ds[i])
		default:
			t.until = begun.Add(s.o.Lease)
		}
	}
}
