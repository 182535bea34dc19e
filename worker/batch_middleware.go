package worker

import (
	"context"
	"runtime/debug"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// wrapBatch lets each message of a batch pass the middleware of single messages: the handler gets those that come
// through, and what it says of each goes back the same way. One message's middleware runs inside that of the one
// before, so that all of it is around the handler, in one goroutine.
func wrapBatch(h batchHandler, all ...[]Middleware) batchHandler {
	wrapped := chain(arrive, all...)
	return func(ctx context.Context, ds []*ferry.Delivery) []error {
		p := &passage{ctx: ctx, handler: h, wrapped: wrapped, ds: ds, errs: make([]error, len(ds)),
			said: make([]error, len(ds))}
		p.pass(0)
		return p.errs
	}
}

// passage is one batch on its way through middleware.
type passage struct {
	ctx     context.Context
	handler batchHandler
	wrapped Handler
	ds      []*ferry.Delivery

	arrived []*member // that came through
	said    []error   // by the handler of each
	errs    []error   // what becomes of each
}

// member is one message of a batch, on its way through middleware. It is in the context of that.
type member struct {
	*passage
	at     int
	d      *ferry.Delivery // as the innermost middleware passed it on
	passed bool
}

type memberKey struct{}

// pass takes the messages from i on through middleware, and then to the handler.
func (p *passage) pass(i int) {
	if i == len(p.ds) {
		p.handle()
		return
	}
	m := &member{passage: p, at: i}
	p.errs[i] = m.through()
	if !m.passed { // it was turned away; the others go on
		p.pass(i + 1)
	}
}

// through turns a panic of middleware into a failure of its message alone.
func (m *member) through() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &crash{value: v, stack: string(debug.Stack())}
		}
	}()
	return m.wrapped(context.WithValue(m.ctx, memberKey{}, m), m.ds[m.at])
}

var errArrivedTwice = driver.NewError(ferry.ErrInvalid,
	"middleware called the handler of a batch twice for one message, or with another context",
	"call next once, with the context that was given or one made from it", nil)

// arrive is the innermost handler: it takes the next message of the batch through its middleware.
func arrive(ctx context.Context, d *ferry.Delivery) error {
	m, ok := ctx.Value(memberKey{}).(*member)
	if !ok || m.passed {
		return errArrivedTwice
	}
	m.passed, m.d = true, d
	m.arrived = append(m.arrived, m)
	m.pass(m.at + 1)
	return m.said[m.at]
}

// handle gives the handler what came through.
func (p *passage) handle() {
	if len(p.arrived) == 0 {
		return
	}
	ds := make([]*ferry.Delivery, len(p.arrived))
	for i, m := range p.arrived {
		ds[i] = m.d
	}
	for i, err := range p.handler(p.ctx, ds) {
		p.said[p.arrived[i].at] = err
	}
}

// run is the run of the message.
func (m *member) run() *run {
	lead, ok := m.ctx.Value(runKey{}).(*run)
	if !ok || lead.batch == nil {
		return nil
	}
	return (*lead.batch)[m.at]
}
