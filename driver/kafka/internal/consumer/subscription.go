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
	silent []*claim // lost after they had begun; see lease.go
	closed bool
	// drained says that nothing is received any more; what is leased stays.
	drained bool
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
	s = &subscription{m: m, o: o, holder: scheduler.NewHolder[Item](o.Weights, o.StrictPriority)}
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
		var claims []*claim
		var ds []*driver.Delivery
		var refused error
		if err := s.m.until(ctx, func() bool {
			if refused = refusal.Receive(s.closed, s.drained); refused != nil {
				return true
			}
			if claims = s.claim(most, time.Now()); !s.needsMore(claims) {
				ds = s.deliverAll(claims)
			}
			return len(claims) > 0
		}); err != nil {
			return nil, err
		}
		if refused == nil && len(ds) == 0 {
			ds, refused = s.complete(ctx, claims)
		}
		if len(ds) > 0 || refused != nil {
			return ds, refused
		}
	}
}

func (s *subscription) claim(most int, now time.Time) []*claim {
	if most = min(most, s.o.MaxInflight-s.holder.Len()); most <= 0 || s.m.stopped || !s.m.vouched(now) {
		return nil
	}
	return s.m.take(s, most, now)
}

func (s *subscription) deliverAll(claims []*claim) []*driver.Delivery {
	ds, claimed := make([]*driver.Delivery, len(claims)), s.m.d.cluster.Now()
	for i, c := range claims {
		ds[i] = s.deliver(c, claimed)
	}
	return ds
}

// needsMore reports whether claims cannot be delivered at once.
func (s *subscription) needsMore(claims []*claim) bool {
	return slices.ContainsFunc(claims, func(c *claim) bool { return c.it.spilled || c.it.tailUnsaved || c.it.isCareful() })
}

// isCareful says that it is committed who holds an item before it is delivered: what kills its holder at once must be
// counted. Until an owner has committed that it delivers nobody would know that it did; after a crash each delivery may
// be the one that did it. What was lost before counts by what Begin has stored.
func (it *Item) isCareful() bool { return it.careful && !it.once || !it.p.begun }

// complete reads the bodies of claims that were spilled, and where that is needed first commits what is leased. Claims
// that cannot be completed are given back.
func (s *subscription) complete(ctx context.Context, claims []*claim) ([]*driver.Delivery, error) {
	m, ctx := s.m, context.WithoutCancel(ctx) // a claim in progress is not ended by it
	ctx, cancel := context.WithTimeout(ctx, s.m.d.cluster.Settings.Session)
	defer cancel()
	var its, unplaced []*Item
	careful := map[*partition]bool{}
	m.mu.Lock()
	for _, c := range claims {
		if c.ended {
			continue
		}
		its = append(its, c.it)
		if c.it.isCareful() {
			careful[c.it.p] = true
		}
		if c.it.tailUnsaved {
			unplaced = append(unplaced, c.it)
		}
	}
	m.mu.Unlock()
	err := m.saver.fill(ctx, its...)
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
		case it.spilled || it.tailUnsaved || s.closed || s.drained || s.tookTooLong(c, now) || returned[it.Msg.Key]:
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

// deliver makes the delivery of a claim, at the brokers' time: deliveries of other processes are compared with it.
func (s *subscription) deliver(c *claim, claimed time.Time) *driver.Delivery {
	it := c.it
	if it.Msg.Headers == nil && it.Msg.Retry == nil {
		c.msg = *it.Msg
		c.msg.Body = bytes.Clone(c.msg.Body)
	} else {
		c.msg = *it.Msg.Clone()
	}
	c.delivered = true
	c.delivery = driver.Delivery{Message: &c.msg, Group: s.o.Group, Ref: it.Ref, Attempt: it.attempts + 1,
		Deliveries: it.lost + 1, Cause: it.cause, ClaimedAt: claimed.UTC(), LeaseUntil: c.until, Token: c}
	return &c.delivery
}

// living returns the claim of a delivery that is still leased.
func (s *subscription) living(d *driver.Delivery, now time.Time) (*claim, error) {
	c, ok := d.Token.(*claim)
	switch {
	case !ok || c.sub != s:
		return nil, cluster.ErrLost("the delivery is not of this subscription")
	case s.closed:
		return nil, driver.NewError(driver.ErrLeaseLost, "the subscription is closed", "subscribe again", driver.ErrClosed)
	case c.p.over || c.p.succeeded || !s.m.vouched(now):
		return nil, cluster.ErrLost("the partition is with another consumer")
	case c.ended || c.settling != nil:
		return nil, cluster.ErrLost("the delivery is no longer held")
	case !c.until.After(now):
		return nil, cluster.ErrLost("the lease has ended")
	}
	return c, nil
}

// claimsOf are the claims of deliveries that are leased; nil of the others, and why.
func (s *subscription) claimsOf(ds []*driver.Delivery, errs []error, now time.Time) []*claim {
	cs := make([]*claim, len(ds))
	for i, d := range ds {
		if errs[i] = d.Check(); errs[i] == nil {
			cs[i], errs[i] = s.living(d, now)
		}
	}
	return cs
}

// Extend makes leases end one full lease from now. That of the partition is kept by heartbeats.
func (s *subscription) Extend(ctx context.Context, ds []*driver.Delivery) []error {
	errs, now := make([]error, len(ds)), time.Now()
	var notices []*kgo.Record
	s.m.mu.Lock()
	s.lapse(now)
	for i, c := range s.claimsOf(ds, errs, now) {
		if c != nil {
			c.until = now.Add(s.o.Lease)
			s.holder.Renew(&c.it.Node)
		} else if ds[i] != nil {
			notices = append(notices, s.refuse(ds[i], now)...)
		}
	}
	s.m.mu.Unlock()
	s.m.saver.tell(ctx, notices)
	return errs
}

// giveUp releases what is leased. It returns what it may still say of lost deliveries: whoever closes a subscription
// lives.
func (s *subscription) giveUp(now time.Time) (notices []*kgo.Record) {
	s.closed = true
	for it := range s.holder.All() {
		if c := it.claimed; c.settling == nil {
			s.m.takeBack(c, driver.CauseReleased)
		}
	}
	for _, c := range s.silent {
		if c.silent {
			notices = append(notices, c.heard(now)...)
		}
	}
	s.silent = nil
	return notices
}

// Close releases what is leased; the last subscription of the process leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	release, err := s.m.d.cluster.Single(ctx, "member/"+s.o.Topic+"/"+s.o.Group)
	if err != nil {
		return err
	}
	defer release()
	s.m.part(ctx, s)
	return nil
}
