package spool

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// adoptAll takes over what all processes that died left.
func (d *Driver) adoptAll(ctx context.Context) error {
	for {
		orphan, err := d.o.Orphan(ctx)
		if err != nil || orphan == nil {
			return err
		}
		if err := errors.Join(d.adopt(ctx, orphan), orphan.Close(context.WithoutCancel(ctx))); err != nil {
			return err
		}
	}
}

// adoptFirst takes over what is there when the spool is opened. What cannot be taken over now, because the disk is full
// for example, does not keep the program from publishing: it is tried again later.
func (d *Driver) adoptFirst(ctx context.Context) error {
	err := d.adoptAll(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	d.notAdopted(err)
	return nil
}

func (d *Driver) notAdopted(err error) {
	d.o.Logger.Error("ferry: the spool of a process that died cannot be taken over; it is tried again", "every",
		d.o.AdoptEvery, "error", err)
}

// keepAdopting looks for processes that died.
func (d *Driver) keepAdopting() {
	ctx := d.life
	for {
		pause(ctx, d.o.AdoptEvery)
		if ctx.Err() != nil {
			return
		}
		if err := d.adoptAll(ctx); err != nil && ctx.Err() == nil {
			d.notAdopted(err)
		}
	}
}

// adopt moves what waits in another local store to ours, so that there is one order for each key. Dead letters stay
// where they are. What is moved is stored here, as safely as it was there, before it leaves the other one; interrupted
// in between it is here twice, under one id.
func (d *Driver) adopt(ctx context.Context, orphan driver.Driver) error {
	infos, err := orphan.Topics(ctx)
	if err != nil {
		return err
	}
	for _, info := range infos {
		s, err := orphan.Stats(ctx, info.Topic)
		if err != nil {
			return err
		}
		if s.Messages == 0 {
			continue
		}
		if err := d.adoptTopic(ctx, orphan, info.Topic); err != nil {
			return err
		}
		d.drain(info.Topic)
	}
	return nil
}

func (d *Driver) adoptTopic(ctx context.Context, orphan driver.Driver, topic string) (err error) {
	sub, err := orphan.Subscribe(ctx,
		driver.SubscribeOptions{Topic: topic, Instance: "adopt", Lease: max(drainLease, orphan.Capabilities().MinLease),
			MaxRun: drainBatch, MaxInflight: drainBatch})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.Close(context.WithoutCancel(ctx))) }()
	for {
		s, err := orphan.Stats(ctx, topic)
		if err != nil || s.Messages == 0 {
			return err
		}
		ds, err := sub.Receive(ctx, drainBatch)
		if err == nil {
			err = d.take(ctx, sub, ds)
		}
		if err != nil {
			return err
		}
	}
}

// take stores what was claimed in our store, then has the other one forget it.
func (d *Driver) take(ctx context.Context, sub driver.Subscription, ds []*driver.Delivery) error {
	msgs, ss := make([]*driver.Message, 0, len(ds)), make([]driver.Settlement, 0, len(ds))
	for _, x := range ds {
		ss = append(ss, driver.Settlement{Delivery: x})
		msgs = append(msgs, aged(x.Message, x.ClaimedAt.Sub(x.PublishedAt)))
	}
	for _, m := range msgs { // whatever the bounds say: it was accepted
		d.backlog.add(m)
	}
	rs, err := d.local.Publish(ctx, msgs, driver.PublishOptions{})
	for i, m := range msgs {
		if i >= len(rs) || rs[i].Err != nil && !errors.Is(rs[i].Err, driver.ErrUnknown) || rs[i].Duplicate {
			d.backlog.remove(m)
			continue
		}
		d.count.noteSpooled()
		d.count.adopted.Add(1)
	}
	if err != nil {
		return err
	}
	return errors.Join(sub.Settle(context.WithoutCancel(ctx), ss)...)
}

// aged returns a stored message with the time that it spent in another store. One that cannot be read stays as it is,
// and is buried when it is drained.
func aged(m *driver.Message, passed time.Duration) *driver.Message {
	r, err := Decode(m.Body)
	if err != nil {
		return m
	}
	r.Age += max(passed, 0)
	stored := r.stored()
	stored.OwnID = true
	if stored.DedupWindow -= r.Age; stored.DedupWindow <= 0 {
		stored.DedupID, stored.DedupWindow = "", 0
	}
	return stored
}
