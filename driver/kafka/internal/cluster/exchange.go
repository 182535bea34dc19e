package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Exchange stores what comes of a message elsewhere, and then what ends it here. With transactions that is one step;
// without them, whoever dies between the two leaves it in both places. It must begin by a time.
func (d *Cluster) Exchange(ctx context.Context, by time.Time, made, ends []*kgo.Record) error {
	left := time.Until(by)
	if left <= 0 {
		return ErrTooLate()
	}
	if d.Settings.Transactions && len(made) > 0 {
		return d.StoreTogether(ctx, left, append(made[:len(made):len(made)], ends...), func(error) {})
	}
	if err := d.Produce(ctx, made...); err != nil {
		return err
	}
	return d.Produce(ctx, ends...)
}

// ErrTooLate is for a change that is not begun any more.
func ErrTooLate() error {
	return driver.NewError(driver.ErrNotApplied, "preparing the change took too long", "try again: nothing was changed",
		nil)
}

// StoreTogether stores records in one transaction. It goes on when ctx ends, for so long at most, and tells what became
// of it in any case.
func (d *Cluster) StoreTogether(ctx context.Context, most time.Duration, records []*kgo.Record,
	tell func(error)) error {
	over := make(chan error, 1)
	run, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	if !d.Task(func() {
		defer cancel()
		err := d.storeWhole(run, records)
		tell(err)
		over <- err
	}) {
		cancel()
		tell(refusal.Closed())
		return refusal.Closed()
	}
	select {
	case err := <-over:
		return err
	case <-d.Done():
		cancel()
		return <-over
	case <-ctx.Done():
		return driver.NewError(driver.ErrUnknown, "the context ended before the transaction",
			"all of it is likely stored: check, or repeat it with the same ids", ctx.Err())
	}
}

// storeWhole stores records all or not at all: in a transaction of this process, one after the other. An error other
// than ErrUnknown says that nothing of it is stored.
func (d *Cluster) storeWhole(ctx context.Context, records []*kgo.Record) error {
	release, err := d.Single(ctx, "transaction")
	if err != nil {
		return notWhole(err)
	}
	defer release()
	doubt, err := d.Atomic.Store(ctx, records, nil)
	switch {
	case err == nil:
		return nil
	case doubt:
		return d.findOut(ctx, records[0], err)
	}
	return notWhole(err)
}

// findOut learns what became of a transaction whose end was not answered: first it is ended for good, then its first
// record is there or not.
func (d *Cluster) findOut(ctx context.Context, r *kgo.Record, cause error) error {
	err := d.Fence(ctx, d.Atomic.ID)
	if err == nil {
		var found *kgo.Record
		if found, err = d.ReadOne(ctx, r.Topic, r.Partition, r.Offset); found != nil {
			return nil
		}
		var starts map[int32]int64
		if err == nil {
			starts, err = d.Starts(ctx, r.Topic)
		}
		if start, ok := starts[r.Partition]; ok && start <= r.Offset { // it is not that it was deleted meanwhile
			return notWhole(cause)
		}
	}
	return Unknown(errors.Join(cause, err), "the messages may or may not be stored, all of them",
		"check, or repeat it with the same ids")
}

// notWhole says that nothing of a transaction is stored, whatever became of one of its records.
func notWhole(err error) error {
	return NotApplied(err, "the messages could not be stored in one transaction", "try again: nothing of it is stored")
}
