package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// subscription is one member of a group. It is guarded by the lock of its topic.
type subscription struct {
	e *Engine
	t *topic
	g *group
	o driver.SubscribeOptions

	closed  bool
	drained bool                   // nothing more is received
	holder  scheduler.Holder[item] // what it has in flight
	waiters []*waiter
	spare   *waiter
	picked  []*item          // scratch of Receive
	losses  map[*claim]*item // lost, begun and counted: until their holder is heard of
}

// Subscribe joins a group, and creates topic and group if they do not exist.
func (e *Engine) Subscribe(ctx context.Context, o driver.SubscribeOptions) (_ driver.Subscription, err error) {
	o, err = o.Resolve(e.o.Capabilities)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &subscription{e: e, o: o, holder: scheduler.NewHolder[item](o.Weights, o.StrictPriority)}
	err = e.join(ctx, o.Topic, o.Group, driver.GroupOptions{Order: o.Order, Start: o.Start}, func(g *group) {
		s.g, s.t = g, g.t
		g.members = append(g.members, s)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// join calls use with a group for one more member, which is made with its topic if need be.
func (e *Engine) join(ctx context.Context, in, name string, o driver.GroupOptions, use func(g *group)) (err error) {
	if _, ok := e.topics.Load(in); !ok { // it is not made for a group that begins in its history
		if err := o.Start.CheckKept(in, 0); err != nil {
			return err
		}
	}
	now := e.now()
	t, err := e.lock(in, now)
	if err != nil {
		return err
	}
	if err := t.meltForStart(ctx, name, o.Start, now); err != nil {
		return err
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	g, err := t.joined(name, o, now)
	if err == nil {
		use(g)
	}
	return err
}

// joined returns the group for one more member with this order, and makes it if needed.
func (t *topic) joined(name string, o driver.GroupOptions, now moment) (*group, error) {
	i, ok := t.group(name)
	if !ok {
		return t.createGroup(name, o, now)
	}
	g := t.groups[i]
	if g.leaving {
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q is being deleted", name, t.name),
			"subscribe when it is gone, or use another group", nil)
	}
	if g.orderFixed && g.order != o.Order {
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("group %q of topic %q has %s order, not %s", name,
			t.name, g.order, o.Order), "use the same order for all members, or delete the group first", nil)
	}
	if !g.orderFixed {
		g.order, g.orderFixed = o.Order, true
		t.alter()
	}
	return g, nil
}

// lock locks the topic and brings it up to date. It reports false if the topic has ended: then it is not locked.
func (s *subscription) lock() (now moment, ok bool) {
	s.t.mu.Lock()
	if s.t.ended {
		s.t.mu.Unlock()
		return now, false
	}
	now = s.e.now()
	s.t.advance(now)
	return now, true
}

// Close releases what is held to its old place, uncounted, and leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	now, ok := s.lock()
	if !ok {
		return nil
	}
	s.leave(now)
	return s.e.outcome(ctx, s.t.unlock(now), false)
}

func (s *subscription) leave(now moment) {
	if s.closed {
		return
	}
	s.closed = true
	for c := range s.losses {
		s.heardOf(c)
	}
	for it := range s.holder.All() {
		c := it.claim
		if c.end(); !c.unseen() {
			it.cause = driver.CauseReleased
		}
		s.g.comeBack(it, now)
	}
	s.g.members = slices.DeleteFunc(s.g.members, func(m *subscription) bool { return m == s })
	for len(s.waiters) > 0 {
		s.wake()
	}
}

func (s *subscription) full() bool { return s.holder.Len() >= s.o.MaxInflight }
