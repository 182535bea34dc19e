package transaction

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// lateFor is how long a half may still arrive after a transaction was rolled back by another than its producer: its
// halves are deleted at once, and again after that.
const lateFor = time.Minute

// finish does what was decided, and notes that it is done. What fails is left to a Resolver.
func (s store) finish(ctx context.Context, t *Transaction, refs []driver.Ref) {
	if err := s.settle(ctx, t, refs); err != nil {
		s.log.WarnContext(ctx, "a transaction is decided, and its halves are left to a resolver", "transaction", t.ID,
			"state", string(t.State), "error", err)
		return
	}
	if !t.mayBeLate() {
		s.done(ctx, t)
	}
}

// mayBeLate reports whether halves may still arrive, so that it is not done before lateFor is over.
func (t *Transaction) mayBeLate() bool { return t.State == RolledBack && t.By != ByProducer }

// settle moves or deletes the halves. Refs are where they are, as far as that is known.
func (s store) settle(ctx context.Context, t *Transaction, refs []driver.Ref) error {
	targets := make([]ferry.Target, len(t.Halves))
	for i, h := range t.Halves {
		targets[i] = ferry.Target{Topic: h.Topic, ID: h.ID}
		if i < len(refs) {
			targets[i].Ref = refs[i]
		}
	}
	var failed error
	for i, err := range s.change(ctx, t, targets) {
		if err == nil || errors.Is(err, driver.ErrNotFound) {
			continue
		}
		// a conflict may also be that another was killed while it moved the half
		if e, looked := s.held(ctx, t.Halves[i]); looked != nil || e != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// change moves or deletes halves that are held.
func (s store) change(ctx context.Context, t *Transaction, targets []ferry.Target) []error {
	if t.State == RolledBack {
		return s.broker.Driver().Delete(ctx, targets)
	}
	moves := make([]ferry.Move, len(targets))
	for i, target := range targets {
		moves[i] = ferry.Move{Target: target, After: t.Halves[i].Delay}
	}
	return s.broker.Driver().Move(ctx, moves)
}

// resume is settle for a transaction that was decided before. Halves may have been moved already, and what became of
// them since must not be touched.
func (s store) resume(ctx context.Context, t *Transaction) error {
	left := *t
	left.Halves = nil
	var refs []driver.Ref
	for _, h := range t.Halves {
		e, err := s.held(ctx, h)
		if err != nil {
			return err
		}
		if e != nil {
			left.Halves, refs = append(left.Halves, h), append(refs, e.Ref)
		}
	}
	return s.settle(ctx, &left, refs)
}

// done notes that nothing is left to do. The decision stays known for keepFor.
func (s store) done(ctx context.Context, t *Transaction) {
	was := *t
	was.Done = true
	for _, r := range s.kv.Apply(ctx, bucketOf(t.ID), driver.KVOptions{},
		driver.Write{Name: donePrefix + t.ID, Data: was.encode(), TTL: keepFor, Quiet: true},
		driver.Write{Name: openPrefix + t.ID, Delete: true, If: driver.Condition(t.revision), Quiet: true}) {
		if r.Err != nil {
			s.log.DebugContext(ctx, "the end of a transaction was not noted, and a resolver does it", "transaction",
				t.ID, "error", r.Err)
		}
	}
}
