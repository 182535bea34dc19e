package consumer

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/refusal"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// subscription is one consumer of a member. Guarded by the member's mu.
type subscription struct {
	m      *member
	o      driver.SubscribeOptions
	holder scheduler.Holder[Item]
	armed  bool     // an alarm is set for the first of its leases
	silent []*claim // lost after they had begun; see losses.go
	closed bool
	// drained says that nothing is received any more; what is held stays.
	drained bool
	done    chan struct{}
}

var _ driver.Subscription = (*subscription)(nil)

// Admit makes a subscription of the member of its group, which joins with the first. It says why that may not.
func (d *Groups) Admit(ctx context.Context, t *registry.TopicState, o driver.SubscribeOptions) (s *subscription, barred,
	err error) {
	release, err := d.cluster.Single(ctx, "member/"+o.Topic+"/"+o.Group)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if d.cluster.IsClosed() {
		return nil, nil, refusal.Closed()
	}
	m := d.memberIn(o.Topic, o.Group)
	if m == nil {
		m = d.newMember(t, o.Group, o.Order)
		if err := m.join(); err != nil {
			return nil, nil, err
		}
		d.mu.Lock()
		d.members[d.cluster.GroupID(o.Topic, o.Group)] = m
		d.mu.Unlock()
		d.Changed() // a pause from before
	}
	s = &subscription{m: m, o: o, holder: scheduler.NewHolder[Item](o.Weights, o.StrictPriority),
		done: make(chan struct{})}
	m.mu.Lock()
	m.subs[s] = struct{}{}
	m.mu.Unlock()
	return s, m.awaitJoined(ctx), nil
}

// awaitJoined waits a while until the group has given us our partitions, or none. What is late comes later. The error
// is why it never will.
func (m *member) awaitJoined(ctx context.Context) (barred error) {
	ctx, cancel := context.WithTimeout(ctx, m.d.cluster.Settings.Session)
	defer cancel()
	_ = m.until(ctx, func() bool {
		over := m.left || m.joined && len(m.coming) == 0
		if !over {
			barred = m.barred
		}
		return over || barred != nil
	})
	return barred
}

// Receive claims what is ready, in memory: the partitions are ours. Only what must be read again, or known to the next
// owner before somebody has it, asks the brokers; see complete.
func (s *subscription) Receive(ctx context.Context, most int) ([]*driver.Delivery, error) {
	if err := driver.CheckMax(most); err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.m.mu.Lock()
		if err := s.receives(); err != nil {
			s.m.mu.Unlock()
			return nil, err
		}
		now := time.Now()
		var claims []*claim
		if n := min(most, s.o.MaxInflight-s.holder.Len()); n > 0 && !s.m.stopped && s.m.vouched(now) {
			claims = s.m.take(s, n, now)
		}
		if s.needsMore(claims) {
			s.m.mu.Unlock()
			if ds, err := s.complete(ctx, claims); len(ds) > 0 || err != nil {
				return ds, err
			}
			continue
		}
		ds, claimed := make([]*driver.Delivery, len(claims)), s.m.d.cluster.Now()
		for i, c := range claims {
			ds[i] = s.deliver(c, claimed)
		}
		if len(ds) > 0 {
			s.m.mu.Unlock()
			return ds, nil
		}
		wake := s.m.await()
		s.m.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.done:
		}
	}
}

// needsMore reports whether claims cannot be delivered at once.
func (s *subscription) needsMore(claims []*claim) bool {
	return slices.ContainsFunc(claims, func(c *claim) bool { return c.it.spilled || c.it.tailUnsaved || c.it.isCareful() })
}

// isCareful says that it is committed who holds an item before it is delivered: what kills its holder at once must be
// counted. Until an owner has committed that it delivers nobody would know that it did; after a crash each delivery may
// be the one that did it. What was lost before counts by what Begin has stored.
func (it *Item) isCareful() bool { return it.careful && !it.once || !it.p.begun }

// complete reads the bodies of claims that were spilled, and commits who is held first where that is needed. Claims
// that cannot be completed are given back.
func (s *subscription) complete(ctx context.Context, claims []*claim) ([]*driver.Delivery, error) {
	m, ctx := s.m, context.WithoutCancel(ctx) // a claim in progress is not ended by it
	ctx, cancel := context.WithTimeout(ctx, s.m.d.cluster.Settings.Session)
	defer cancel()
	var spilled, unplaced []*Item
	careful := map[*partition]bool{}
	m.mu.Lock()
	for _, c := range claims {
		if c.ended {
			continue
		}
		if c.it.spilled {
			spilled = append(spilled, c.it)
		}
		if c.it.isCareful() {
			careful[c.it.p] = true
		}
		if c.it.tailUnsaved {
			unplaced = append(unplaced, c.it)
		}
	}
	m.mu.Unlock()
	err := m.saver.fill(ctx, spilled...)
	if err == nil {
		m.saver.awaitSaved(ctx, unplaced)
		_ = m.commit(ctx, slices.Collect(maps.Keys(careful))...) // then it is delivered uncounted
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var ds []*driver.Delivery
	// keys of which one went back: those behind it go too
	now, claimed, returned := time.Now(), m.d.cluster.Now(), map[string]bool{}
	for _, c := range claims {
		switch it := c.it; {
		case c.ended:
		case it.spilled || it.tailUnsaved || s.receives() != nil || s.tookTooLong(c, now) || returned[it.Msg.Key]:
			if it.tailUnsaved {
				err = driver.NewError(driver.ErrNotApplied, "the place of a message among those of its key could not be stored",
					"see whether the brokers can be reached", nil)
			}
			returned[it.Msg.Key] = it.Msg.Key != ""
			m.takeBack(c, it.cause)
		default:
			ds = append(ds, s.deliver(c, claimed))
		}
	}
	if len(ds) > 0 {
		err = nil
	}
	return ds, err
}

// tookTooLong says that a claim must not be delivered any more: while it was completed the process may have been
// stopped, or cut off.
func (s *subscription) tookTooLong(c *claim, now time.Time) bool {
	return c.p.going || !s.m.vouched(now) || !c.until.After(now) || c.it.expired(now)
}

// claimedDelivery is a claim, its delivery and its message: one allocation.
type claimedDelivery struct {
	claim
	driver.Delivery
	msg driver.Message
}

// deliver makes the delivery of a claim, at the brokers' time: deliveries of other processes are compared with it.
func (s *subscription) deliver(c *claim, claimed time.Time) *driver.Delivery {
	it := c.it
	h := c.made
	if it.Msg.Headers == nil && it.Msg.Retry == nil {
		h.msg = *it.Msg
		h.msg.Body = bytes.Clone(h.msg.Body)
	} else {
		h.msg = *it.Msg.Clone()
	}
	h.Delivery = driver.Delivery{Message: &h.msg, Group: s.o.Group, Ref: it.Ref, Attempt: it.attempts + 1,
		Deliveries: it.lost + 1, Cause: it.cause, ClaimedAt: claimed.UTC(), LeaseUntil: c.until, Token: c}
	c.delivery = &h.Delivery
	return c.delivery
}

// living returns the claim of a delivery that is still held.
func (s *subscription) living(d *driver.Delivery, now time.Time) (*claim, error) {
	c, ok := d.Token.(*claim)
	switch {
	case !ok || c.sub != s:
		return nil, cluster.ErrLost("the delivery is not of this subscription")
	case s.closed:
		return nil, driver.NewError(driver.ErrLeaseLost, "the subscription is closed", "subscribe again", driver.ErrClosed)
	case c.p.settleOver || c.p.succeeded || !s.m.vouched(now):
		return nil, cluster.ErrLost("the partition is with another consumer")
	case c.ended || c.settling != nil:
		return nil, cluster.ErrLost("the delivery is no longer held")
	case !c.until.After(now):
		return nil, cluster.ErrLost("the lease has ended")
	}
	return c, nil
}

// Extend makes leases end one full lease from now. That of the partition is kept by heartbeats.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs := make([]error, len(ds))
	now := time.Now()
	s.m.mu.Lock()
	lapsed := s.lapse(now)
	var notices []*kgo.Record
	for i, d := range ds {
		if errs[i] = d.Check(); errs[i] != nil {
			continue
		}
		c, err := s.living(d, now)
		if err != nil {
			errs[i] = err
			notices = append(notices, s.refuse(d, now)...)
			continue
		}
		c.until = now.Add(s.o.Lease)
		s.holder.Renew(&c.it.Node)
	}
	s.m.mu.Unlock()
	s.m.saver.saveLapsed(lapsed)
	s.m.saver.tell(ctx, notices)
	return errs
}

// giveUp releases what is held, and ends waiting calls.
func (s *subscription) giveUp() {
	if s.closed {
		return
	}
	s.closed = true
	close(s.done)
	for it := range s.holder.All() {
		if c := it.claimed; c.settling == nil {
			s.m.takeBack(c, driver.CauseReleased)
		}
	}
}

// Close releases what is held; the last subscription of the process leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	d, id := s.m.d, s.m.d.cluster.GroupID(s.o.Topic, s.o.Group)
	release, err := d.cluster.Single(ctx, "member/"+s.o.Topic+"/"+s.o.Group)
	if err != nil {
		return err
	}
	defer release()
	s.m.mu.Lock()
	s.giveUp()
	notices := s.lastNotices(time.Now())
	delete(s.m.subs, s)
	last := len(s.m.subs) == 0
	s.m.mu.Unlock()
	s.m.saver.tell(ctx, notices)
	if !last {
		return nil
	}
	d.mu.Lock()
	if d.members[id] == s.m {
		delete(d.members, id)
	}
	d.mu.Unlock()
	s.m.leave(ctx)
	return nil
}
