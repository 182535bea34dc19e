package cluster

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// Produce stores records and waits for all; the error is of those that failed.
func (d *Cluster) Produce(ctx context.Context, rs ...*kgo.Record) error {
	return Joined(d.ProduceEach(ctx, rs)...)
}

// ProduceEach stores records, one error each. It returns when ctx ends; the records are stored or fail all the same.
func (d *Cluster) ProduceEach(ctx context.Context, rs []*kgo.Record) []error {
	return d.Send(ctx, rs, nil, nil).Wait(ctx)
}

// Production is some records on their way.
type Production struct {
	sent    []sent
	left    atomic.Int64
	scratch *record.Scratch        // of their bytes; may be nil
	tell    func(i int, err error) // what became of each, also when nobody waits any more; may be nil
	over    chan struct{}
}

// sent is a record on its way. As the context of its record it leads from the answer to the production, which saves a
// closure for each record: by BenchmarkSend 268 allocations for 100 records instead of 370.
type sent struct {
	context.Context
	p        *Production
	at       int // which one it is
	err      error
	answered atomic.Bool // err is set
}

// Send begins to store records, in order. Their scratch is released when all are answered: nothing of them is sent
// again after that.
func (d *Cluster) Send(ctx context.Context, rs []*kgo.Record, scratch *record.Scratch,
	tell func(i int, err error)) *Production {
	p := &Production{sent: make([]sent, len(rs)), scratch: scratch, tell: tell, over: make(chan struct{})}
	if len(rs) == 0 {
		p.end()
		return p
	}
	p.left.Store(int64(len(rs)))
	staying := context.WithoutCancel(ctx)
	for i, r := range rs {
		p.sent[i].Context, p.sent[i].p, p.sent[i].at = staying, p, i
		r.Context = &p.sent[i]
		d.Client.Produce(staying, r, answered)
	}
	return p
}

// answered is told what became of a record.
func answered(r *kgo.Record, err error) {
	s := r.Context.(*sent)
	p := s.p
	if p.tell != nil {
		p.tell(s.at, err)
	}
	if err != nil {
		s.err = Unsure("the record", err)
	}
	s.answered.Store(true)
	if p.left.Add(-1) == 0 {
		p.end()
	}
}

// end is called when all are answered.
func (p *Production) end() {
	p.scratch.Release()
	close(p.over)
}

// Wait returns what became of each record, as far as it is known when ctx ends.
func (p *Production) Wait(ctx context.Context) []error {
	errs := make([]error, len(p.sent))
	select {
	case <-p.over:
	case <-ctx.Done():
	}
	for i := range p.sent {
		if s := &p.sent[i]; s.answered.Load() {
			errs[i] = s.err
		} else {
			errs[i] = driver.NewError(driver.ErrUnknown, "the context ended before the brokers answered",
				"it is likely stored: check, or repeat it with the same id", ctx.Err())
		}
	}
	return errs
}
