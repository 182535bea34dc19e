package victim

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
)

// Driver is a driver of one process. Inspection and management pass unharmed.
type Driver struct {
	driver.Driver
	log    *history.Writer
	harm   *Harm
	shared bool
}

// Wrap returns a driver that writes to log and suffers harm. A shared driver is not closed with the process.
func Wrap(d driver.Driver, log *history.Writer, harm *Harm, shared bool) *Driver {
	return &Driver{Driver: d, log: log, harm: harm, shared: shared}
}

// Publish stores messages, unless they or the answer get lost on the way.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt,
	error) {
	c := d.harm.pass()
	if c.buried || c.away {
		return fail(msgs, lost(c))
	}
	receipts, err := d.Driver.Publish(ctx, msgs, o)
	c = d.harm.pass()
	if c.buried || c.mute {
		return fail(msgs, errMute)
	}
	return receipts, err
}

func lost(c condition) error {
	if c.buried {
		return errBuried
	}
	return errAway
}

func fail(msgs []*driver.Message, err error) ([]driver.Receipt, error) {
	receipts := make([]driver.Receipt, len(msgs))
	errs := make([]error, len(msgs))
	for i, m := range msgs {
		receipts[i] = driver.Receipt{ID: m.ID, Err: err}
		errs[i] = err
	}
	return receipts, errors.Join(errs...)
}

// Subscribe joins a group.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	if c := d.harm.pass(); c.buried || c.away {
		return nil, lost(c)
	}
	s, err := d.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &subscription{inner: s, driver: d}, nil
}

// Close closes the driver underneath if it is the process's own.
func (d *Driver) Close(ctx context.Context) error {
	if c := d.harm.pass(); c.buried || d.shared {
		return nil
	}
	return d.Driver.Close(ctx)
}
