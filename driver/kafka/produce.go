package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// produce stores records and waits for all; the error is of the first that failed.
func (d *Driver) produce(ctx context.Context, rs ...*kgo.Record) error {
	if len(rs) == 0 {
		return nil
	}
	errs := d.produceEach(ctx, rs)
	return errors.Join(errs...)
}

// produceEach stores records, one error each. It returns when ctx ends; the records are stored or fail all the same.
func (d *Driver) produceEach(ctx context.Context, rs []*kgo.Record) []error {
	return d.produceAnd(ctx, rs, nil)
}

// production is some records on their way.
type production struct {
	mu       sync.Mutex
	left     int
	answered []bool
	errs     []error
	over     chan struct{}
}

// produceAnd is produceEach that tells of each record what became of it, also after ctx has ended.
func (d *Driver) produceAnd(ctx context.Context, rs []*kgo.Record, tell func(i int, err error)) []error {
	if len(rs) == 0 {
		return nil
	}
	p := &production{left: len(rs), answered: make([]bool, len(rs)), errs: make([]error, len(rs)), over: make(chan struct{})}
	staying := context.WithoutCancel(ctx)
	for i, r := range rs {
		d.client.Produce(staying, r, func(_ *kgo.Record, err error) {
			if tell != nil {
				tell(i, err)
			}
			p.answer(i, err)
		})
	}
	select {
	case <-p.over:
		return p.errs
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := slices.Clone(p.errs)
	for i := range errs {
		if !p.answered[i] {
			errs[i] = driver.NewError(driver.ErrUnknown, "the context ended before the brokers answered", "it is likely stored: check, or repeat it with the same id", ctx.Err())
		}
	}
	return errs
}

func (p *production) answer(i int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs[i], p.answered[i] = unsure("the record", err), true
	if p.left--; p.left == 0 {
		close(p.over)
	}
}
