package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// operations are what a step of a history can be; frequent ones are listed often.
var operations = [...]func(*history, *dice){
	(*history).publish, (*history).publish, (*history).publish, (*history).publish, (*history).publish, (*history).publish,
	(*history).receive, (*history).receive, (*history).receive, (*history).receive, (*history).receive, (*history).receive,
	(*history).receive,
	(*history).settle, (*history).settle, (*history).settle, (*history).settle, (*history).settle, (*history).settle,
	(*history).settle,
	(*history).settleStale,
	(*history).extend,
	(*history).begin, (*history).begin,
	(*history).wait, (*history).wait, (*history).wait,
	(*history).move, (*history).move,
	(*history).delete,
	(*history).pauseOrPurge,
	(*history).join,
}

// duration is zero, or a random one in virtual time, and one that never ends otherwise.
func (h *history) duration(d *dice, most time.Duration) time.Duration {
	if d.n(2) == 0 {
		return 0
	}
	if !h.t.Virtual {
		return 1000 * time.Hour
	}
	return time.Duration(1+d.n(int(most/time.Millisecond))) * time.Millisecond
}

// message makes a random message.
func (h *history) message(d *dice) *driver.Message {
	m := h.t.msg("")
	m.Body = []byte("body of " + m.ID)
	if d.n(3) > 0 {
		m.Key = fmt.Sprint("k", d.n(h.keys))
	}
	m.Priority = lanes[d.n(4)]
	m.Headers = map[string]string{"n": m.ID}
	switch d.n(8) {
	case 0:
		m.Delay = driver.Hold
	case 1, 2:
		m.Delay = h.duration(d, time.Second)
	}
	if h.t.Virtual && d.n(5) == 0 {
		m.TTL = time.Duration(50+d.n(2000)) * time.Millisecond
		if m.Delay != driver.Hold && m.Delay >= m.TTL {
			m.Delay = 0
		}
	}
	if h.t.Caps.Dedup != driver.DedupPerSession && d.n(6) == 0 {
		m.DedupID, m.DedupWindow = fmt.Sprint("d", d.n(3)), time.Duration(1+d.n(300))*time.Millisecond
		if !h.t.Virtual {
			m.DedupWindow = driver.MaxDedup
		}
	}
	return m
}

func (h *history) publish(d *dice) {
	if len(h.m.pending) > 40 || h.queued() > 120 {
		return // so that a history ends
	}
	var ms []*driver.Message
	for range 1 + d.n(3) {
		ms = append(ms, h.message(d))
	}
	rs, err := h.t.Publish(h.t.Context(), ms, driver.PublishOptions{})
	for i, m := range ms {
		h.note("publish %s key %q %s delay %v ttl %v dedup %q", m.ID, m.Key, m.Priority, m.Delay, m.TTL, m.DedupID)
		id, duplicate := h.m.publish(m)
		if err != nil || len(rs) != len(ms) || rs[i].ID != id || rs[i].Duplicate != duplicate {
			h.fail("receipts %+v, %v; want %q, duplicate %v for number %d", rs, err, id, duplicate, i)
		}
	}
}

func (h *history) queued() int {
	n := 0
	for _, g := range h.m.groups {
		n = max(n, len(g.entries))
	}
	return n
}

func (h *history) consumer(d *dice) *consumer { return h.subs[d.n(len(h.subs))] }

// receive demands a delivery where the model has one, and judges whatever comes.
func (h *history) receive(d *dice) {
	c := h.consumer(d)
	c.member.claims++
	most, must := 1+d.n(5), h.m.mustTake(c.member)
	wait := h.t.Patience
	if !must {
		if !h.t.Virtual {
			return // waiting for nothing takes real time
		}
		wait = time.Duration(1+d.n(20)) * time.Millisecond
	}
	h.t.fetched()
	ctx, cancel := context.WithTimeout(h.t.Context(), wait)
	defer cancel()
	start := h.clock()
	ds, err := c.Receive(ctx, most)
	h.note("receive at most %d by %s of %s: %s %v", most, c.member.o.Instance, c.member.g.name, describe(ds), err)
	h.m.advance(h.clock())
	late := h.clock().Sub(start) > h.t.Late
	switch {
	case must && (err != nil || late):
		h.fail("nothing was delivered in time, although something is ready: %v", err)
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		h.fail("Receive: %v", err)
	case err == nil && len(ds) == 0 || len(ds) > most:
		h.fail("Receive of at most %d returned %d", most, len(ds))
	}
	for _, x := range ds {
		if err := h.m.take(c.member, x); err != nil {
			h.fail("%v", err)
		}
		c.held = append(c.held, x)
	}
}

// settle ends up to three deliveries in one call.
func (h *history) settle(d *dice) {
	c := h.consumer(d)
	if len(c.held) == 0 {
		return
	}
	var ss []driver.Settlement
	for range 1 + d.n(3) {
		x := driver.Settlement{Delivery: c.held[d.n(len(c.held))],
			Outcome: []driver.Outcome{driver.Ack, driver.Ack, driver.Ack,
				driver.Ack, driver.Retry, driver.Retry, driver.Release, driver.Dead, driver.Drop}[d.n(9)]}
		switch x.Outcome {
		case driver.Retry:
			x.After, x.Failure = h.duration(d, time.Second), failure("history")
		case driver.Release:
			x.After, x.Unseen = h.duration(d, time.Second), d.n(2) == 0
		case driver.Dead:
			x.Failure = failure("history")
		}
		if d.n(8) == 0 {
			x.Emit = []*driver.Message{h.message(d)}
		}
		ss = append(ss, x)
	}
	h.apply(c, ss)
}

// settleStale tries to end deliveries that are no longer held.
func (h *history) settleStale(d *dice) {
	c := h.consumer(d)
	if len(c.stale) == 0 {
		return
	}
	x := driver.Settlement{Delivery: c.stale[d.n(len(c.stale))], Outcome: outcomes[d.n(5)],
		Emit: []*driver.Message{h.message(d)}}
	h.apply(c, []driver.Settlement{x})
}

func (h *history) apply(c *consumer, ss []driver.Settlement) {
	errs := c.Settle(h.t.Context(), ss)
	for i, x := range ss {
		h.note("settle %s %s after %v emit %d: %v", x.Outcome, x.Delivery.ID, x.After, len(x.Emit), errs[i])
		held := h.m.settle(c.member, x)
		if held && errs[i] != nil || !held && !errors.Is(errs[i], driver.ErrLeaseLost) {
			h.fail("Settle %s of %s, held %v: got error %v", x.Outcome, x.Delivery.ID, held, errs[i])
		}
	}
	c.forget()
}

// extend renews some leases, and tries to renew one that is lost.
func (h *history) extend(d *dice) {
	c := h.consumer(d)
	ds := append([]*driver.Delivery(nil), c.held[:d.n(len(c.held)+1)]...)
	held := len(ds)
	if len(c.stale) > 0 {
		ds = append(ds, c.stale[d.n(len(c.stale))])
	}
	for i, err := range c.Extend(h.t.Context(), ds) {
		h.note("extend %s: %v", ds[i].ID, err)
		if i < held {
			c.member.g.find(ds[i].ID).lease = h.m.now.Add(c.member.o.Lease)
		} else {
			h.m.hear(c.member, ds[i])
		}
		if i < held && err != nil || i >= held && !errors.Is(err, driver.ErrLeaseLost) {
			h.fail("Extend of %s, held %v: got error %v", ds[i].ID, i < held, err)
		}
	}
}

// begin starts the handlers of some deliveries, and tries to start one that is lost.
func (h *history) begin(d *dice) {
	c := h.consumer(d)
	ds := append([]*driver.Delivery(nil), c.held[:d.n(len(c.held)+1)]...)
	held := len(ds)
	if len(c.stale) > 0 {
		ds = append(ds, c.stale[d.n(len(c.stale))])
	}
	for i, err := range c.Begin(h.t.Context(), ds) {
		h.note("begin %s: %v", ds[i].ID, err)
		if i < held {
			c.member.g.find(ds[i].ID).begun = true
		}
		if i < held && err != nil || i >= held && !errors.Is(err, driver.ErrLeaseLost) {
			h.fail("Begin of %s, held %v: got error %v", ds[i].ID, i < held, err)
		}
	}
}

// wait lets time pass.
func (h *history) wait(d *dice) {
	if !h.t.Virtual {
		return
	}
	pass := time.Duration(1+d.n(400)) * time.Millisecond
	if at, event := h.m.nextEvent(); event != nil && d.n(3) == 0 {
		until := at.Sub(h.m.now) - time.Duration(2+d.n(1000)) // just before something is due
		if until > 0 && until < time.Second {
			pass = until
		}
	}
	h.note("%v pass", pass)
	h.tick(pass)
}
