package guard

import (
	"context"
	"time"
)

var _ Store = (*Dir)(nil)

// Take implements Limits. A block is on disk before the message that caused it is answered.
func (d *Dir) Take(ctx context.Context, t Take) (v Verdict, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) (err error) {
		v, err = l.take(now, &t)
		return err
	})
	return v, err
}

// Return implements Limits.
func (d *Dir) Return(ctx context.Context, t Take, ticket uint64) error {
	return d.do(ctx, func(l *ledger, now time.Time) error {
		l.giveBack(now, &t, ticket)
		return nil
	})
}

// Acquire implements Slots. Slots in this process are held until they are released.
func (d *Dir) Acquire(ctx context.Context, r SlotRequest) (s Slot, err error) {
	err = d.do(ctx, func(l *ledger, _ time.Time) (err error) {
		s, err = l.acquire(r)
		return err
	})
	return s, err
}

// Release implements Slots.
func (d *Dir) Release(ctx context.Context, r SlotRequest) error {
	return d.do(ctx, func(l *ledger, _ time.Time) error {
		l.release(r)
		return nil
	})
}

// Begin implements Marks.
func (d *Dir) Begin(ctx context.Context, r MarkRequest) (m Mark, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) (err error) {
		m, err = l.begin(now, r)
		return err
	})
	return m, err
}

// Complete implements Marks. The mark is on disk when it returns.
func (d *Dir) Complete(ctx context.Context, r MarkRequest) error {
	return d.do(ctx, func(l *ledger, now time.Time) error {
		l.complete(now, r)
		return nil
	})
}

// Abort implements Marks.
func (d *Dir) Abort(ctx context.Context, r MarkRequest) error {
	return d.do(ctx, func(l *ledger, _ time.Time) error {
		l.abort(r)
		return nil
	})
}

// Change implements Desk. The change is on disk when it returns.
func (d *Dir) Change(ctx context.Context, c Change) error {
	return d.do(ctx, func(l *ledger, now time.Time) error { return l.change(now, c) })
}

// Status implements Desk.
func (d *Dir) Status(ctx context.Context, limit, key string) (s Status, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		s = l.status(now, limit, key)
		return nil
	})
	return s, err
}

// List implements Desk.
func (d *Dir) List(ctx context.Context, q Query) (p Page, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		p = l.list(now, q.resolved())
		return nil
	})
	return p, err
}

// Audit implements Desk.
func (d *Dir) Audit(ctx context.Context, max int) (all []Change, err error) {
	err = d.do(ctx, func(l *ledger, _ time.Time) error {
		all = l.newest(max)
		return nil
	})
	return all, err
}

// Report implements Desk.
func (d *Dir) Report(ctx context.Context, instance string, breakers []BreakerStatus) (f []Forced, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		f = l.report(now, instance, breakers)
		return nil
	})
	return f, err
}

// Reports implements Desk.
func (d *Dir) Reports(ctx context.Context) (all []BreakerStatus, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		all = l.allReports(now)
		return nil
	})
	return all, err
}
