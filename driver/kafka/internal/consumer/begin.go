package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// Begin records that handlers are about to start: in the retry log, where the next owner finds it.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	errs, m := make([]error, len(ds)), s.m
	var cs []*claim
	var begun []saving
	if err := m.until(ctx, func() bool {
		cs = s.claimsOf(ds, errs, time.Now())
		if slices.ContainsFunc(cs, func(c *claim) bool { return c != nil && c.it.saving }) {
			return false // it could come there later
		}
		begun = s.start(cs)
		return true
	}); err != nil {
		for i := range errs {
			errs[i] = driver.NewError(driver.ErrNotApplied, "an earlier state of the message is still being stored",
				"try again", err)
		}
		return errs
	}
	if len(begun) == 0 {
		return errs
	}
	rs := make([]*kgo.Record, len(begun))
	for i, x := range begun {
		rs[i] = x.r
	}
	stored := m.d.cluster.Send(ctx, rs, nil, func(i int, err error) { m.saver.stored(begun[i], err) }).Wait(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for i, c := range cs {
		at := slices.IndexFunc(begun, func(x saving) bool { return x.begins == c })
		switch {
		case at < 0: // refused, or it has begun before
		case stored[at] != nil:
			errs[i] = stored[at]
		case !c.begun || !s.ours(c, now):
			errs[i] = cluster.ErrLost("the delivery was lost while its start was stored")
		}
	}
	return errs
}

// start prepares the records of claims that have not begun yet.
func (s *subscription) start(cs []*claim) (begun []saving) {
	for _, c := range cs {
		if c != nil && !c.begun && !c.it.saving { // one may be given twice
			next := c.it.now()
			next.Begun = c.String()
			begun = append(begun, s.m.saver.save(c.it, next, c))
		}
	}
	return begun
}
