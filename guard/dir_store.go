package guard

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/guard/store"
)

var _ Store = (*dirStore)(nil)

// Take implements store.Limits. A block is on disk before the message that caused it is answered.
func (d *dirStore) Take(ctx context.Context, t store.Take) (v Verdict, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) (err error) {
		v, err = l.take(now, &t)
		return err
	})
	return v, err
}

// Return implements store.Limits.
func (d *dirStore) Return(ctx context.Context, t store.Take, ticket uint64) error {
	return d.do(ctx, func(l *ledger, now time.Time) error {
		l.giveBack(now, &t, ticket)
		return nil
	})
}

// Acquire implements store.Slots. Slots in this process are held until they are released.
func (d *dirStore) Acquire(ctx context.Context, r store.SlotRequest) (s store.Slot, err error) {
	err = d.do(ctx, func(l *ledger, _ time.Time) (err error) {
		s, err = l.slots.acquire(r)
		return err
	})
	return s, err
}

// Release implements store.Slots.
func (d *dirStore) Release(ctx context.Context, r store.SlotRequest) error {
	return d.do(ctx, func(l *ledger, _ time.Time) error {
		l.slots.release(r)
		return nil
	})
}

// Begin implements store.Marks.
func (d *dirStore) Begin(ctx context.Context, r store.MarkRequest) (m store.Mark, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) (err error) {
		m, err = l.marks.begin(r.Digest(), r.Token, func() time.Duration { return now.Sub(l.epoch) })
		return err
	})
	return m, err
}

// Complete implements store.Marks. The mark is on disk when it returns.
func (d *dirStore) Complete(ctx context.Context, r store.MarkRequest) error {
	return d.do(ctx, func(l *ledger, now time.Time) error {
		l.complete(now, &r)
		return nil
	})
}

// Abort implements store.Marks.
func (d *dirStore) Abort(ctx context.Context, r store.MarkRequest) error {
	return d.do(ctx, func(l *ledger, _ time.Time) error {
		l.marks.abort(r.Digest(), r.Token)
		return nil
	})
}

// Change implements store.Desk. The change is on disk when it returns.
func (d *dirStore) Change(ctx context.Context, c Change) error {
	return d.do(ctx, func(l *ledger, now time.Time) error { return l.change(now, c) })
}

// Status implements store.Desk.
func (d *dirStore) Status(ctx context.Context, limit, key string) (s Status, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		s = l.status(now, limit, key)
		return nil
	})
	return s, err
}

// List implements store.Desk.
func (d *dirStore) List(ctx context.Context, q Query) (p Page, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		p = l.list(now, q.Resolve())
		return nil
	})
	return p, err
}

// Rules implements store.Desk.
func (d *dirStore) Rules(ctx context.Context) (all []SharedRule, err error) {
	err = d.do(ctx, func(l *ledger, _ time.Time) error {
		all = l.sharedRules()
		return nil
	})
	return all, err
}

// Audit implements store.Desk.
func (d *dirStore) Audit(ctx context.Context, max int) (all []Change, err error) {
	err = d.do(ctx, func(l *ledger, _ time.Time) error {
		all = l.newest(max)
		return nil
	})
	return all, err
}

// Report implements store.Desk.
func (d *dirStore) Report(ctx context.Context, instance string,
	breakers []BreakerStatus) (f []store.Forced, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		f = l.report(now, instance, breakers)
		return nil
	})
	return f, err
}

// Reports implements store.Desk.
func (d *dirStore) Reports(ctx context.Context) (all []BreakerStatus, err error) {
	err = d.do(ctx, func(l *ledger, now time.Time) error {
		all = l.allReports(now)
		return nil
	})
	return all, err
}
