package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// HandleBatch registers a handler that gets several messages at once: up to BatchSize, after at most BatchWait.
// It occupies one slot. Messages of one key are in order within a batch, and no other batch has any of that key.
//
// Middleware is that of single messages: each message passes it, and the batch is what comes through. What middleware
// adds to the context of one message is not in the handler's.
//
// The error it returns is that of every message; ItemErrors gives each its own. Settled in slice order, a message that
// is retried or parked takes the later ones of its key back with it, handled or not: they come again behind it, and say
// released.
func HandleBatch[T any](w *Worker, topic string, handler func(ctx context.Context, ms []*ferry.Msg[T]) error,
	opts ...HandlerOption) {
	if w == nil {
		return
	}
	r := &registration{topic: topic}
	if handler != nil {
		r.batch = decodeBatch(w.broker, handler)
	}
	w.register(r, opts)
}

// ItemErrors gives each message of a batch its own outcome: one error each, in the order of the messages, nil for those
// that were handled.
type ItemErrors []error

// Error joins what went wrong.
func (e ItemErrors) Error() string {
	if err := errors.Join(e...); err != nil {
		return err.Error()
	}
	return "no errors"
}

// Unwrap makes errors.Is and errors.As see each of them.
func (e ItemErrors) Unwrap() []error {
	all := make([]error, 0, len(e))
	for _, err := range e {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// batchHandler returns one error for each delivery.
type batchHandler func(ctx context.Context, ds []*ferry.Delivery) []error

func decodeBatch[T any](b *ferry.Broker, handler func(context.Context, []*ferry.Msg[T]) error) batchHandler {
	return func(ctx context.Context, ds []*ferry.Delivery) []error {
		errs := make([]error, len(ds))
		ms, at := make([]*ferry.Msg[T], 0, len(ds)), make([]int, 0, len(ds))
		for i, d := range ds {
			m, err := decodeItem[T](ctx, b, d)
			if err != nil {
				errs[i] = err
				continue
			}
			ms, at = append(ms, m), append(at, i)
		}
		if len(ms) == 0 {
			return errs
		}
		for i, err := range spreadErrors(callBatch(ctx, handler, ms), len(ms)) {
			errs[at[i]] = err
		}
		return errs
	}
}

// decodeItem turns a panic of a codec into a failure of its message alone.
func decodeItem[T any](ctx context.Context, b *ferry.Broker, d *ferry.Delivery) (m *ferry.Msg[T], err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &crash{value: p, stack: string(debug.Stack())}
		}
	}()
	if m, err = ferry.Decode[T](ctx, b, d); err != nil {
		err = undecoded(err)
	}
	return m, err
}

// callBatch turns a panic into an error here, so that what did not decode is not retried for it.
func callBatch[T any](ctx context.Context, handler func(context.Context, []*ferry.Msg[T]) error,
	ms []*ferry.Msg[T]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &crash{value: p, stack: string(debug.Stack())}
		}
	}()
	return handler(ctx, ms)
}

// spreadErrors gives each of n messages its error.
func spreadErrors(err error, n int) []error {
	if items, ok := err.(ItemErrors); ok { //nolint:errorlint // wrapped, it is one error for all
		if len(items) == n {
			return items
		}
		err = driver.NewError(ferry.ErrInvalid,
			fmt.Sprintf("the batch handler returned %d item errors for %d messages", len(items), n),
			"return one for each message, nil for those that were handled", nil)
	}
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// executeBatch runs the handler of a batch and decides about each member.
func (e *engine) executeBatch(lead *run) verdict {
	ds := make([]*ferry.Delivery, len(*lead.batch))
	for i, m := range *lead.batch {
		ds[i] = m.d
	}
	return e.judgeBatch(lead, lead.c.batch(lead, ds))
}

func (e *engine) judgeBatch(lead *run, errs []error) verdict {
	v := verdict{now: e.now(), each: make([]driver.Settlement, len(*lead.batch))}
	took, cause := v.now-lead.started, lead.cause()
	lead.end()
	for i, m := range *lead.batch {
		switch {
		case errs[i] == nil:
			v.each[i] = driver.Settlement{Delivery: m.d, Outcome: driver.Ack}
		case m.cancelled.Load():
			v.each[i] = *dropped(m)
		default:
			v.each[i] = lead.c.decide(m, failed{errs[i], cause, took})
			e.logPanicked(m, &v.each[i], errs[i])
		}
		v.each[i].Took = took
		e.report(m, v.each[i].Outcome, errs[i], took)
	}
	return v
}
