package spool

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Publish stores messages in the broker, and in the local store those that the broker has not taken: because it is
// away, or because the store still has earlier ones of their key. It is refused where neither can give the level that
// is asked for. An atomic publish is never spooled.
func (d *Driver) Publish(ctx context.Context, msgs []*driver.Message,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	if d.backlog.empty() && d.breaker.closed() {
		rs, err := d.try(ctx, msgs, o)
		if err == nil {
			return rs, nil
		}
		return d.fallBack(ctx, msgs, rs, o)
	}
	if d.shut.Load() {
		rs := make([]driver.Receipt, len(msgs))
		return rs, failAll(rs, errClosed())
	}
	return d.split(ctx, msgs, o)
}

// split sends the messages that may go straight to the broker, and the others to the local store.
func (d *Driver) split(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	straight := d.straight(msgs)
	switch {
	case len(straight) == len(msgs):
		rs, err := d.try(ctx, msgs, o)
		if err == nil {
			return rs, nil
		}
		return d.fallBack(ctx, msgs, rs, o)
	case o.Atomic:
		rs := make([]driver.Receipt, len(msgs))
		return rs, failAll(rs, d.errAtomic())
	}
	rs := make([]driver.Receipt, len(msgs))
	for i := range rs {
		rs[i].Err = errBehind
	}
	if len(straight) > 0 {
		sent := make([]*driver.Message, len(straight))
		for n, i := range straight {
			sent[n] = msgs[i]
		}
		answers, _ := d.try(ctx, sent, o) // each receipt tells
		for n, i := range straight {
			rs[i] = answers[n]
		}
	}
	return d.fallBack(ctx, msgs, rs, o)
}

// errBehind is the answer to a message that was not sent, because the broker is away or because of its key. Nobody sees
// it unless the local store does not take the message either.
var errBehind = driver.NewError(driver.ErrNotApplied,
	"the broker is away, or earlier messages of the key wait in the spool", "publish it again", nil)

// straight returns which messages may go to the broker now.
func (d *Driver) straight(msgs []*driver.Message) []int {
	if !d.breaker.closed() && (!d.backlog.empty() || !d.breaker.turn()) { // with a backlog it is the drainers who try
		return nil
	}
	return d.backlog.absent(msgs)
}

// try publishes to the broker, and tells the breaker what came of it. There is one receipt for each message.
func (d *Driver) try(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if !d.caps.Local {
		limited, cancel = context.WithTimeout(ctx, d.patience(ctx))
	}
	rs, err := d.main.Publish(limited, msgs, o)
	cancel()
	if len(rs) != len(msgs) { // of a driver that answers nothing nobody knows
		rs = make([]driver.Receipt, len(msgs))
		_ = failAll(rs, driver.NewError(driver.ErrUnknown, "the broker did not say what became of the messages",
			"publish the same ID again", err))
	}
	if err == nil || len(msgs) == 0 {
		d.answered()
		return rs, err
	}
	for _, r := range rs {
		if !away(r.Err) {
			d.answered()
			return rs, err
		}
	}
	if ctx.Err() == nil {
		d.failed(rs[0].Err)
	}
	return rs, err
}

// patience is how long the broker has to answer: a caller with a deadline needs the other half for the local store.
func (d *Driver) patience(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(d.o.Try, time.Until(deadline)/2)
	}
	return d.o.Try
}

// away reports whether an error says that the broker has not taken a message, or has not said so, and not that it is at
// fault.
func away(err error) bool {
	return err != nil && (errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown))
}

// fallBack puts what the broker has not taken into the local store, and completes the receipts.
func (d *Driver) fallBack(ctx context.Context, msgs []*driver.Message, rs []driver.Receipt,
	o driver.PublishOptions) ([]driver.Receipt, error) {
	if o.Atomic || ctx.Err() != nil || d.shut.Load() {
		return rs, joined(rs)
	}
	var at []int
	// keys of which a later message is in the broker: an earlier one cannot be before it any more
	var passed map[string]bool
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		switch {
		case rs[i].Err == nil && m.Key != "":
			if passed == nil {
				passed = map[string]bool{}
			}
			passed[m.Topic+"/"+m.Key] = true
		case away(rs[i].Err) && (m == nil || m.Key == "" || !passed[m.Topic+"/"+m.Key]):
			at = append(at, i)
		}
	}
	for l, r := 0, len(at)-1; l < r; l, r = l+1, r-1 {
		at[l], at[r] = at[r], at[l]
	}
	if len(at) > 0 {
		d.store(ctx, msgs, rs, at, o)
	}
	return rs, joined(rs)
}

func (d *Driver) errAtomic() error {
	return driver.NewError(driver.ErrNotApplied,
		"the broker is away, or a key has messages in the spool, and an atomic publish is never spooled",
		"publish it again when the broker is back, or without Atomic", d.breaker.cause())
}

// failAll puts an error into every receipt.
func failAll(rs []driver.Receipt, err error) error {
	for i := range rs {
		rs[i].Err = err
	}
	if len(rs) == 0 {
		return nil
	}
	return joined(rs)
}

// joined is the error of a publish with these receipts.
func joined(rs []driver.Receipt) error {
	var errs []error
	for i := range rs {
		if rs[i].Err != nil {
			errs = append(errs, rs[i].Err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
