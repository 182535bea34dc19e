package spool

import (
	"context"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// contentType marks what is in the local store: bodies are records.
const contentType = "application/vnd.ferry.spooled"

// store puts the messages at these places into the local store, in order, and fills in their receipts. They hold what
// the broker said so far.
func (d *Driver) store(ctx context.Context, msgs []*driver.Message, rs []driver.Receipt, at []int,
	o driver.PublishOptions) {
	level, ok := cover(d.local.Capabilities(), o.Level)
	switch {
	case !d.caps.Gives(o.Level):
		answer(rs, at, d.caps.Refuse(o.Level))
		return
	case !ok:
		answer(rs, at, driver.NewError(driver.ErrNotApplied,
			fmt.Sprintf("the broker has not taken the message, and the spool cannot give durability %q", o.Level),
			"publish it again when the broker is back, or ask for less", d.breaker.cause()))
		return
	}
	var stored []*driver.Message
	var places []int
	for _, i := range at {
		if err := msgs[i].CheckPublish(d.caps.MaxBody); err != nil {
			rs[i].Err = err
			continue
		}
		if msgs[i].Delay == driver.Hold {
			answer(rs, []int{i}, d.errHeld())
			continue
		}
		m := spooled(msgs[i], o.Level)
		if err := d.backlog.reserve(m); err != nil {
			d.refuse(ctx, msgs[i], &rs[i], err)
			continue
		}
		stored, places = append(stored, m), append(places, i)
	}
	if len(stored) == 0 {
		return
	}
	answers, err := d.local.Publish(ctx, stored, driver.PublishOptions{Level: level})
	for n, i := range places {
		a := driver.Receipt{Err: err}
		if n < len(answers) {
			a = answers[n]
		}
		d.accepted(ctx, msgs[i], stored[n], a, &rs[i])
	}
}

// errHeld is the answer to a half of a transaction. It could come to the broker after the transaction was rolled back,
// when nobody looks for it any more.
func (d *Driver) errHeld() error {
	return driver.NewError(driver.ErrNotApplied,
		"the broker is away, or the key has messages in the spool, and a half of a transaction is never spooled",
		"roll back, and begin another transaction when the broker is back", d.breaker.cause())
}

// accepted takes in what the local store said of one message.
func (d *Driver) accepted(ctx context.Context, m, stored *driver.Message, a driver.Receipt, r *driver.Receipt) {
	switch {
	case a.Err == nil && a.Duplicate:
		d.backlog.remove(stored)
		*r = driver.Receipt{ID: a.ID, Duplicate: true, Spooled: true}
	case a.Err == nil:
		*r = driver.Receipt{ID: a.ID, Spooled: true}
		d.count.noteSpooled()
		d.drain(m.Topic)
	case errors.Is(a.Err, driver.ErrUnknown):
		// It may be in the store, and then goes to the broker: its key stays in the backlog, so that nothing overtakes it.
		*r = driver.Receipt{ID: m.ID, Err: a.Err}
		d.drain(m.Topic)
	default:
		d.backlog.remove(stored)
		d.refuse(ctx, m, r, a.Err)
	}
}

// refuse answers a message that the local store does not take: it goes to the emergency file, or back to its publisher.
// What the broker may have stored all the same stays unknown.
func (d *Driver) refuse(ctx context.Context, m *driver.Message, r *driver.Receipt, err error) {
	if d.emergency != nil {
		file, failure := d.emergency.write(ctx, m)
		d.noteEmergency(m, file, failure)
		if failure == nil {
			*r = driver.Receipt{ID: m.ID, Spooled: true}
			return
		}
		err = errors.Join(err, failure)
	}
	d.noteFull(m, err)
	if errors.Is(r.Err, driver.ErrUnknown) {
		r.Err = driver.NewError(driver.ErrUnknown,
			"the broker has not said whether it stored the message, and the spool has not taken it",
			"publish the same ID again", errors.New(err.Error()))
		return
	}
	r.Err = err
}

// answer puts an error into some receipts. What the broker may have stored all the same stays unknown.
func answer(rs []driver.Receipt, at []int, err error) {
	for _, i := range at {
		if !errors.Is(rs[i].Err, driver.ErrUnknown) {
			rs[i].Err = err
		}
	}
}

// cover returns the lowest level that c gives and that is no less than level. Zero is whatever each of them does by
// itself.
func cover(c driver.Capabilities, level driver.Durability) (driver.Durability, bool) {
	if level == 0 {
		return 0, true
	}
	best, found := driver.Durability(0), false
	for _, l := range c.Levels {
		if l >= level && (!found || l < best) {
			best, found = l, true
		}
	}
	return best, found
}
