package spool

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	drainBatch = 512
	// drainLease is longer than a try takes: what is held is settled long before.
	drainLease = 30 * time.Second
	// fullWait is when a message is tried again for which the broker had no room, at least.
	fullWait = 200 * time.Millisecond
	fullMost = 5 * time.Second
	// lookEvery is how often the broker is asked for the bounds of a topic while it drains.
	lookEvery = 10 * time.Second
	// retryWait is between tries of what should not fail: the local store.
	retryWait = time.Second
)

// drain makes sure that somebody brings what is spooled of a topic to the broker.
func (d *Driver) drain(topic string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.drainers[topic] {
		return
	}
	d.drainers[topic] = true
	d.wait.Go(func() { (&drainer{d: d, topic: topic}).run() })
}

// drainer brings the messages of one topic from the local store to the broker. Messages of a key come as a run, and a
// run is in one publish.
type drainer struct {
	d     *Driver
	topic string
	sub   driver.Subscription
	full  time.Duration // how long to wait, since the broker has no room; zero while it has

	bounded bool // the topic is, as far as the broker tells
	looked  time.Time
}

func (r *drainer) run() {
	ctx := r.d.life
	for ctx.Err() == nil {
		sub, err := r.d.local.Subscribe(ctx, r.options())
		if err == nil {
			r.sub = sub
			err = r.work(ctx)
			_ = sub.Close(context.WithoutCancel(ctx))
		}
		if ctx.Err() != nil {
			return
		}
		r.d.o.Logger.Error("ferry: the spool cannot be read", "topic", r.topic, "error", err)
		pause(ctx, retryWait)
	}
}

func (r *drainer) options() driver.SubscribeOptions {
	c := r.d.local.Capabilities()
	return driver.SubscribeOptions{Topic: r.topic, Instance: "spool", Lease: max(drainLease, c.MinLease),
		MaxRun: drainBatch, MaxInflight: drainBatch}
}

// work drains until the life of the driver ends, or the local store fails.
func (r *drainer) work(ctx context.Context) error {
	for {
		probe, ok := r.d.breaker.pass(ctx)
		if !ok {
			return ctx.Err()
		}
		ds, err := r.receive(ctx, probe)
		switch {
		case err != nil:
			return err
		case !probe && !r.d.breaker.closed(): // it was spooled because the broker is away
			r.settle(released(nil, ds))
		case len(ds) > 0:
			r.publish(ds)
		}
	}
}

// receive claims messages. A probe takes one, and does not wait for it: somebody else may have one.
func (r *drainer) receive(ctx context.Context, probe bool) ([]*driver.Delivery, error) {
	if !probe {
		return r.sub.Receive(ctx, drainBatch)
	}
	limited, cancel := context.WithTimeout(ctx, r.d.o.Every)
	defer cancel()
	ds, err := r.sub.Receive(limited, 1)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ds, err
}

// released appends the settlements that give deliveries back to their place.
func released(ss []driver.Settlement, ds []*driver.Delivery) []driver.Settlement {
	for _, x := range ds {
		ss = append(ss, driver.Settlement{Delivery: x, Outcome: driver.Release, Unseen: true})
	}
	return ss
}

// bound is one delivery of the local store on its way to the broker.
type bound struct {
	*driver.Delivery
	record Record
	msg    *driver.Message // as it is published
}

// publish sends what was claimed to the broker, and settles it by what that said.
func (r *drainer) publish(ds []*driver.Delivery) {
	var done, back []driver.Settlement
	var way []bound
	for _, x := range ds {
		record, err := Decode(x.Body)
		if err != nil {
			done = append(done, r.bury(x, nil, err))
			continue
		}
		m, alive := record.Due(x.ClaimedAt.Sub(x.PublishedAt))
		if !alive {
			r.d.expired(record.Message)
			done = append(done, driver.Settlement{Delivery: x, Outcome: driver.Drop})
			continue
		}
		m.Topic = r.topic
		way = append(way, bound{x, record, m})
	}
	if len(way) > 1 {
		r.look()
	}
	for len(way) > 0 {
		n := r.part(way)
		settled, returned, goOn := r.send(way[:n])
		done, back = append(done, settled...), append(back, returned...)
		var behind []*driver.Delivery
		way, behind = remaining(way[n:], returned, goOn)
		back = released(back, behind)
	}
	r.settle(append(done, back...)) // what is in the broker first: a release takes the rest of its key along
}

// remaining splits what was not sent yet into what may still be, and what must not: everything once the broker is away,
// and otherwise what is behind a message of its key that went back.
func remaining(way []bound, returned []driver.Settlement, goOn bool) (rest []bound, behind []*driver.Delivery) {
	stuck := map[string]bool{}
	for _, s := range returned {
		if s.Delivery.Key != "" {
			stuck[s.Delivery.Key] = true
		}
	}
	for _, b := range way {
		if !goOn || stuck[b.Key] {
			behind = append(behind, b.Delivery)
			continue
		}
		rest = append(rest, b)
	}
	return rest, behind
}

// look finds out whether the topic is bounded. In doubt it is.
func (r *drainer) look() {
	if !r.looked.IsZero() && time.Since(r.looked) < lookEvery {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.d.life), r.d.o.Try)
	defer cancel()
	infos, err := r.d.main.Topics(ctx)
	r.bounded, r.looked = err != nil, time.Now()
	for _, info := range infos {
		if info.Topic == r.topic {
			r.bounded = info.Config.MaxMessages > 0 || info.Config.MaxBytes > 0
		}
	}
}

// part returns how many of the first can go in one publish: of one level; and one of each key where the broker may have
// no room for one and then, in the same call, for the next, because it is smaller or somebody was served meanwhile.
func (r *drainer) part(way []bound) int {
	careful := r.bounded || r.full > 0
	var keys map[string]bool
	for n, b := range way {
		if b.record.Level != way[0].record.Level || keys[b.Key] {
			return n
		}
		if careful && b.Key != "" {
			if keys == nil {
				keys = map[string]bool{}
			}
			keys[b.Key] = true
		}
	}
	return len(way)
}

// send publishes some, and returns how to settle them: those that are through with the spool, and those that go back.
// False: the broker is away.
func (r *drainer) send(way []bound) (done, back []driver.Settlement, goOn bool) {
	msgs := make([]*driver.Message, len(way))
	for i, b := range way {
		msgs[i] = b.msg
	}
	rs, _ := r.d.try(context.WithoutCancel(r.d.life), msgs, driver.PublishOptions{Level: way[0].record.Level})
	goOn, full := true, false
	for i, b := range way {
		switch err := rs[i].Err; {
		case err == nil:
			done = append(done, driver.Settlement{Delivery: b.Delivery})
		case errors.Is(err, driver.ErrFull):
			full = true
			back = append(back, driver.Settlement{Delivery: b.Delivery, Outcome: driver.Release, After: r.wait(), Unseen: true})
		case away(err) || errors.Is(err, driver.ErrClosed):
			goOn = false
			back = append(back, driver.Settlement{Delivery: b.Delivery, Outcome: driver.Release, Unseen: true})
		default:
			done = append(done, r.bury(b.Delivery, b.msg, err))
		}
	}
	switch {
	case full:
		r.full = r.wait()
	case goOn:
		r.full = 0
	}
	return done, back, goOn
}

// wait is how long to wait for room in the broker: longer each time.
func (r *drainer) wait() time.Duration { return min(max(2*r.full, fullWait), fullMost) }

// bury makes a message a dead letter of the local store: the broker will never take it.
func (r *drainer) bury(x *driver.Delivery, m *driver.Message, err error) driver.Settlement {
	if m == nil {
		m = x.Message
	}
	r.d.buried(m, err)
	return driver.Settlement{Delivery: x, Outcome: driver.Dead,
		Failure: &driver.Failure{Reason: reasonOf(err), Error: err.Error()}}
}

// reasonOf is the reason of a dead letter, by what the broker said.
func reasonOf(err error) driver.Reason {
	if errors.Is(err, driver.ErrInvalid) {
		return driver.ReasonInvalidMessage
	}
	return driver.ReasonRejected
}

// settle tells the local store, and takes what is through out of the backlog.
func (r *drainer) settle(ss []driver.Settlement) {
	lost := false
	for i, err := range r.sub.Settle(context.WithoutCancel(r.d.life), ss) {
		s := ss[i]
		switch {
		case s.Outcome == driver.Release:
		case err == nil:
			r.d.through(s)
		case errors.Is(err, driver.ErrLeaseLost): // it comes again, and the broker knows its id
		case !lost:
			lost = true
			r.d.o.Logger.Error("ferry: the spool cannot note what it has drained; it is published again", "topic",
				r.topic, "error", err)
		}
	}
}

// through takes a message out of the backlog.
func (d *Driver) through(s driver.Settlement) {
	d.backlog.remove(s.Delivery.Message)
	switch s.Outcome {
	case driver.Ack:
		d.count.drained.Add(1)
	case driver.Drop:
		d.count.expired.Add(1)
	case driver.Dead:
		d.count.buried.Add(1)
		d.count.dead.Add(1)
	}
}

func (d *Driver) buried(m *driver.Message, err error) {
	d.o.Logger.Error("ferry: the broker refuses a spooled message for good: it becomes a dead letter of the spool",
		"topic", m.Topic, "id", m.ID, "error", err)
	if f := d.o.Hooks.Dead; f != nil {
		d.guarded("Dead", func() { f(m, err) })
	}
}

func (d *Driver) expired(m *driver.Message) {
	if f := d.o.Hooks.Expired; f != nil {
		d.guarded("Expired", func() { f(m) })
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
