package cluster

import (
	"context"
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
	case <-d.Done:
		cancel()
		return <-over
	case <-ctx.Done():
		return driver.NewError(driver.ErrUnknown, "the context ended before the transaction",
			"all of it is likely stored: check, or repeat it with the same ids", ctx.Err())
	}
}
