package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// beginning is a delivery whose start is on its way to the retry log.
type beginning struct {
	c       *claim
	it      *Item
	r       *kgo.Record
	changes uint32
}

// Begin records that handlers are about to start: in the retry log, where the next owner finds it.
func (s *subscription) Begin(ctx context.Context, ds []*driver.Delivery) []error {
	errs, m := make([]error, len(ds)), s.m
	bs, at := s.start(ctx, ds, errs)
	if len(bs) == 0 {
		return errs
	}
	rs := make([]*kgo.Record, len(bs))
	for i, b := range bs {
		rs[i] = b.r
	}
	stored := m.d.cluster.Send(ctx, rs, nil, func(i int, err error) { m.saver.storeEnds(m.saver.began(bs[i], err)) }).Wait(
		ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for i, n := range at {
		switch {
		case n < 0:
		case stored[n] != nil:
			errs[i] = stored[n]
		case !bs[n].c.begun || !s.ours(bs[n].c, now):
			errs[i] = cluster.ErrLost("the delivery was lost while its start was stored")
		}
	}
	return errs
}

// start prepares the records of deliveries that have not begun yet. at says which one each delivery has: -1 for none.
func (s *subscription) start(ctx context.Context, ds []*driver.Delivery, errs []error) (bs []beginning, at []int) {
	err := s.m.until(ctx, func() bool {
		saving := s.saving(ds)
		if !saving {
			bs, at = s.prepareStart(ds, errs)
		}
		return !saving
	})
	if err != nil {
		for i := range errs {
			errs[i] = driver.NewError(driver.ErrNotApplied, "an earlier state of the message is still being stored",
				"try again", err)
		}
	}
	return bs, at
}

// saving reports whether something of the deliveries is on its way to the retry log: it could come there later.
func (s *subscription) saving(ds []*driver.Delivery) bool {
	now := time.Now()
	return slices.ContainsFunc(ds, func(d *driver.Delivery) bool {
		if d.Check() != nil {
			return false
		}
		c, err := s.living(d, now)
		return err == nil && c.it.saving
	})
}

func (s *subscription) prepareStart(ds []*driver.Delivery, errs []error) (bs []beginning, at []int) {
	at = make([]int, len(ds))
	now := time.Now()
	for i, d := range ds {
		if at[i], errs[i] = -1, d.Check(); errs[i] != nil {
			continue
		}
		c, err := s.living(d, now)
		at[i] = slices.IndexFunc(bs, func(b beginning) bool { return b.c == c })
		switch {
		case err != nil:
			errs[i] = err
		case c.begun || at[i] >= 0:
		default:
			next := c.it.now()
			next.Begun = c.String()
			at[i] = len(bs)
			bs = append(bs, beginning{c, c.it, s.m.retryRecord(c.it, next), c.it.changes})
			c.it.saving = true
		}
	}
	return bs, at
}

// began is told what became of the record of a start, and returns the end of a message that was settled meanwhile.
func (m saver) began(b beginning, err error) (end *kgo.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end = m.saver.stored(b.it, b.r, b.changes, err)
	switch {
	case err != nil || b.it.state == gone || b.it.p.lost:
	case b.c.ended: // it went back, or was lost, before it began
		m.unbegin(b.it)
	default:
		b.c.begun, b.c.logKey = true, b.it.logKey
	}
	return end
}
