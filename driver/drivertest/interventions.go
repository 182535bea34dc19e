package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// target picks a message of a group, or one that is pending.
func (h *history) target(d *dice) (driver.Target, bool) {
	if n := len(h.m.pending); n > 0 && d.n(3) == 0 {
		return driver.Target{Topic: topic, ID: h.m.pending[d.n(n)].ID}, true
	}
	g := h.m.groups[d.n(len(h.m.groups))]
	if len(g.entries) == 0 {
		return driver.Target{}, false
	}
	return driver.Target{Topic: topic, Group: g.name, ID: g.entries[d.n(len(g.entries))].ID}, true
}

func (h *history) move(d *dice) {
	t, ok := h.target(d)
	if !ok || h.placeIsOpen(t) {
		return
	}
	x := driver.Move{Target: t, After: h.duration(d, time.Second)}
	if g := h.m.group(t.Group); g != nil && g.find(t.ID).state == driver.StateDead && g.find(t.ID).Key != "" {
		x.After = 0 // whether followers wait for a later replay is open
	}
	err := h.t.Move(h.t.Context(), []driver.Move{x})[0]
	h.note("move %s of group %q after %v: %v", t.ID, t.Group, x.After, err)
	if want := h.m.move(x); !errors.Is(err, want) {
		h.fail("Move of %s: got error %v, want %v", t.ID, err, want)
	}
}

// placeIsOpen reports whether t is a dead letter with a TTL, or one whose key has other messages: the contract says
// neither whether the TTL still counts after a replay nor where among the others it goes.
func (h *history) placeIsOpen(t driver.Target) bool {
	g := h.m.group(t.Group)
	if g == nil {
		return false
	}
	e := g.find(t.ID)
	if e.state != driver.StateDead || e.Key == "" {
		return e.state == driver.StateDead && e.TTL > 0
	}
	for _, x := range g.entries {
		if x != e && x.Key == e.Key && x.state != driver.StateDead {
			return true
		}
	}
	return e.TTL > 0
}

func (h *history) delete(d *dice) {
	t, ok := h.target(d)
	if !ok {
		return
	}
	if d.n(3) == 0 {
		t.Group = ""
	}
	err := h.t.Delete(h.t.Context(), []driver.Target{t})[0]
	h.note("delete %s of group %q: %v", t.ID, t.Group, err)
	if want := h.m.delete(t); !errors.Is(err, want) {
		h.fail("Delete of %s: got error %v, want %v", t.ID, err, want)
	}
}

func (h *history) pauseOrPurge(d *dice) {
	g := h.m.groups[d.n(len(h.m.groups))]
	switch d.n(4) {
	case 0:
		h.m.paused = !h.m.paused && d.n(2) == 0
		h.pauseTo("", h.m.paused)
	case 1, 2:
		g.paused = !g.paused && d.n(2) == 0
		h.pauseTo(g.name, g.paused)
	case 3:
		h.purge(d, g.name)
	}
}

func (h *history) pauseTo(group string, paused bool) {
	h.note("pause %q: %v", group, paused)
	if err := h.t.Pause(h.t.Context(), topic, group, paused); err != nil {
		h.fail("Pause: %v", err)
	}
}

// purge empties one group, or the topic.
func (h *history) purge(d *dice, group string) {
	if d.n(4) > 0 {
		return
	}
	if d.n(2) == 0 {
		group = ""
	}
	n, err := h.t.Purge(h.t.Context(), topic, group)
	h.note("purge %q: %d %v", group, n, err)
	if want := h.m.purge(group); n != want || err != nil {
		h.fail("Purge of %q: got %d, %v; want %d", group, n, err, want)
	}
}

// join lets a member leave and another come, or makes a new group.
func (h *history) join(d *dice) {
	if len(h.m.groups) < 3 && d.n(6) == 0 {
		h.newGroup(d)
		return
	}
	i := d.n(len(h.subs))
	c := h.subs[i]
	h.note("%s of %s leaves", c.member.o.Instance, c.member.g.name)
	if err := c.Close(h.t.Context()); err != nil {
		h.fail("Subscription.Close: %v", err)
	}
	h.m.close(c.member)
	h.subs = append(h.subs[:i:i], h.subs[i+1:]...)
	h.newMember(c.member.g, d)
}

func (h *history) newGroup(d *dice) {
	h.names++
	g := &group{name: fmt.Sprint("g", h.names), order: driver.Order(d.n(2))}
	h.note("new group %s %s", g.name, g.order)
	if err := h.t.EnsureGroup(h.t.Context(), topic, g.name, driver.GroupOptions{Order: g.order}); err != nil {
		h.fail("EnsureGroup: %v", err)
	}
	h.m.groups = append(h.m.groups, g)
	members := 1
	if h.t.Caps.Parallel == driver.ParallelUnbounded {
		members += d.n(2)
	}
	for range members {
		h.newMember(g, d)
	}
}

func (h *history) newMember(g *group, d *dice) {
	h.names++
	o := driver.SubscribeOptions{Topic: topic, Group: g.name, Instance: fmt.Sprint("i", h.names), Order: g.order,
		Lease:  h.t.Caps.MinLease,
		MaxRun: 1 + d.n(3), MaxInflight: 2 + d.n(10), StrictPriority: d.n(4) == 0}
	if !h.t.Virtual {
		o.Lease = longLease
	}
	if g.order == driver.Relaxed {
		o.MaxRun = 1
	}
	h.note("%s joins %s, run %d, inflight %d", o.Instance, g.name, o.MaxRun, o.MaxInflight)
	s, err := h.t.Subscribe(h.t.Context(), o)
	if err != nil {
		h.fail("Subscribe: %v", err)
	}
	h.subs = append(h.subs, &consumer{sub: &sub{Subscription: s, t: h.t}, member: &member{g: g, o: o}})
}

// drain acks everything there is, and demands that nothing but dead letters is left.
func (h *history) drain() {
	h.m.paused = false
	h.pauseTo("", false)
	for _, g := range h.m.groups {
		g.paused = false
		h.pauseTo(g.name, false)
	}
	for _, p := range append([]*message(nil), h.m.pending...) {
		h.moveNow(driver.Target{Topic: topic, ID: p.ID})
	}
	for _, g := range h.m.groups {
		for _, e := range append([]*entry(nil), g.entries...) {
			if e.state == driver.StateWaiting {
				h.moveNow(driver.Target{Topic: topic, Group: g.name, ID: e.ID})
			}
		}
	}
	d := dice(1)
	for rounds := 0; h.live() > 0; rounds++ {
		if rounds > 10_000 {
			h.fail("%d messages cannot be drained", h.live())
		}
		for _, c := range h.subs {
			for len(c.held) > 0 {
				h.apply(c, []driver.Settlement{{Delivery: c.held[0], Outcome: driver.Ack}})
			}
			c.member.claims++
			if h.m.mustTake(c.member) {
				one := consumerOnly(h, c)
				one.receive(&d)
			}
		}
		h.tick(0)
	}
	h.compare()
}

// consumerOnly is the history as seen by one consumer.
func consumerOnly(h *history, c *consumer) *history {
	one := *h
	one.subs = []*consumer{c}
	return &one
}

func (h *history) moveNow(t driver.Target) {
	if err := h.t.Move(h.t.Context(), []driver.Move{{Target: t}})[0]; err != nil {
		h.fail("Move of %s: %v", t.ID, err)
	}
	if err := h.m.move(driver.Move{Target: t}); err != nil {
		h.fail("the model cannot move %s: %v", t.ID, err)
	}
}

// live counts what is not settled.
func (h *history) live() int { return int(h.m.stats(nil).Messages) }
