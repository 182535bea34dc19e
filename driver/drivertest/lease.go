package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// outcomes are all the ways a delivery can end.
var outcomes = []driver.Outcome{driver.Ack, driver.Retry, driver.Dead, driver.Release, driver.Drop}

func leaseExpiryRedelivers(t *T) {
	s := t.shortLease()
	t.put("a")
	before := time.Now()
	d := s.one()
	t.counted(d, 1, 1, driver.CauseFirst)
	again := s.one()
	t.counted(again, 1, 2, driver.CauseLeaseExpired)
	waited := time.Since(before)
	if waited < t.Caps.MinLease-t.clockSlack() {
		t.Errorf("redelivered after %v although the lease is %v", waited, t.Caps.MinLease)
	}
	if waited > t.Caps.MinLease+time.Second+t.Late+t.stalledSince(before) {
		t.Errorf("redelivered after %v, later than lease %v and 1 s", waited, t.Caps.MinLease)
	}
	t.before(again.LeaseUntil, func() {
		if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && g.Redelivered != 1 {
			t.Errorf("Redelivered is %d after one lost lease", g.Redelivered)
		}
	})
	s.ack(again)
}

// clockSlack is how much sooner a lease or a window may seem to end, because it began before the call returned to us.
func (t *T) clockSlack() time.Duration {
	if t.Virtual {
		return 0
	}
	return 50 * time.Millisecond
}

func leaseExpiryKeepsKeyOrder(t *T) {
	s := t.shortLease()
	t.putKeyed("k", "a1", "a2")
	s.expect("a1")
	d := s.expect("a1")[0]
	t.counted(d, 1, 2, driver.CauseLeaseExpired)
	s.ack(d)
	s.ack(s.expect("a2")...)
}

func leaseExpiryOfARun(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{Lease: t.Caps.MinLease, MaxRun: 2})
	t.putKeyed("k", "a1", "a2", "a3")
	old := s.expect("a1", "a2")
	again := s.expect("a1", "a2")
	t.counted(again[0], 1, 2, driver.CauseLeaseExpired)
	for _, d := range old {
		s.refused(driver.Settlement{Delivery: d, Outcome: driver.Ack})
	}
	s.ack(again...)
	s.ack(s.expect("a3")...)
}

// staleSettleRefused: after a lease was lost and the message redelivered, nothing the old holder says has an effect.
func staleSettleRefused(t *T) {
	s := t.shortLease()
	t.oneLane(other)
	t.put(numbered("a", len(outcomes))...)
	old := s.take(len(outcomes))
	held := s.lose(old...)
	s.extend(held...)
	t.before(time.Now().Add(t.Caps.MinLease), func() {
		for i, o := range outcomes {
			s.refused(driver.Settlement{Delivery: old[i], Outcome: o, Failure: failure("late")})
			s.refused(driver.Settlement{Delivery: old[i], Outcome: o, Failure: failure("late"),
				Emit: []*driver.Message{t.msg("never", to(other))}})
		}
		t.counts(0, int64(len(outcomes)), 0, 0)
	})
	if t.Caps.Counts == driver.CountsExact && t.stats(other).Published != 0 {
		t.Errorf("the Emit of a refused settlement was published")
	}
	s.ack(held...)
	if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact &&
		(g.Acked != uint64(len(outcomes)) || g.Dropped != 0) {
		t.Errorf("Stats %+v, want %d acked and nothing else", g, len(outcomes))
	}
	s.idle()
	t.subscribe(driver.SubscribeOptions{Topic: other}).idle()
}

// staleSettleRefusedBeforeRedelivery: a lost lease is lost even while nobody else has the message.
func staleSettleRefusedBeforeRedelivery(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("the loss of the lease cannot be seen in estimates")
	}
	s := t.shortLease()
	t.put(numbered("a", len(outcomes))...)
	old := s.take(len(outcomes))
	t.ok(t.Pause(t.ctx(), topic, "", true), "Pause")
	t.until("the leases end", func() bool { return t.groupStats(driver.DefaultGroup).Inflight == 0 })
	for i, o := range outcomes {
		s.refused(driver.Settlement{Delivery: old[i], Outcome: o})
	}
	t.counts(int64(len(outcomes)), 0, 0, 0)
	t.ok(t.Pause(t.ctx(), topic, "", false), "Pause")
	for _, d := range s.take(len(outcomes)) {
		t.counted(d, 1, 2, driver.CauseLeaseExpired)
	}
}

func staleExtendRefused(t *T) {
	s := t.shortLease()
	t.put("a")
	old := s.one()
	held := s.lose(old)[0]
	errs := s.Extend(t.ctx(), []*driver.Delivery{old, held})
	t.wantErr(errs[0], driver.ErrLeaseLost, "Extend of a lost lease")
	t.ok(errs[1], "Extend of a held lease")
	s.ack(held)
	t.wantErr(s.Extend(t.ctx(), []*driver.Delivery{held})[0], driver.ErrLeaseLost, "Extend of a settled delivery")
}

func settledOnlyOnce(t *T) {
	for _, first := range outcomes {
		s := t.consumer()
		t.put(first.String())
		d := s.one()
		s.settle(driver.Settlement{Delivery: d, Outcome: first, After: time.Hour, Failure: failure("x")})
		before := t.groupStats(driver.DefaultGroup)
		for _, second := range outcomes {
			s.refused(driver.Settlement{Delivery: d, Outcome: second, Failure: failure("y")})
		}
		after := t.groupStats(driver.DefaultGroup)
		before.Oldest, after.Oldest = 0, 0
		t.equal(after, before, "Stats after settling twice")
		s.leave()
	}
}

func settledOnlyOnceInOneCall(t *T) {
	s := t.consumer()
	t.put("a", "b")
	ds := s.take(2)
	errs := s.errs(driver.Settlement{Delivery: ds[0], Outcome: driver.Ack},
		driver.Settlement{Delivery: ds[0], Outcome: driver.Retry}, driver.Settlement{Delivery: ds[1], Outcome: driver.Ack})
	t.ok(errs[0], "first settlement")
	t.wantErr(errs[1], driver.ErrLeaseLost, "second settlement of the same delivery")
	t.ok(errs[2], "settlement of another delivery")
	t.counts(0, 0, 0, 0)
}

// settledOnceBehindItsHead: of two settlements of one delivery in a call the first counts, also where it waits for the
// one of the message ahead.
func settledOnceBehindItsHead(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 2})
	t.publish(t.msg("head", key("k")), t.msg("behind", key("k")))
	ds := s.take(2)
	errs := s.errs(driver.Settlement{Delivery: ds[0], Outcome: driver.Dead, Failure: failure("dead")},
		driver.Settlement{Delivery: ds[1], Outcome: driver.Ack},
		driver.Settlement{Delivery: ds[1], Outcome: driver.Release})
	t.ok(errs[0], "Settle of the head")
	t.ok(errs[1], "the first Settle of what is behind it")
	t.wantErr(errs[2], driver.ErrLeaseLost, "the second one")
	s.idle()
}

// settledBeforeItsHeadReturns: an outcome that stands before the return of the head of its key in a call takes effect,
// also where it waits for the one of a message between them.
func settledBeforeItsHeadReturns(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 4})
	for _, back := range []driver.Outcome{driver.Release, driver.Retry} {
		t.publish(t.msg("head", key("k")), t.msg("second", key("k")), t.msg("third", key("k")), t.msg("fourth", key("k")))
		ds := s.take(4)
		errs := s.errs(driver.Settlement{Delivery: ds[2], Outcome: driver.Dead, Failure: failure("dead")},
			driver.Settlement{Delivery: ds[3], Outcome: driver.Drop},
			driver.Settlement{Delivery: ds[0], Outcome: back})
		t.ok(errs[0], "Settle of the third")
		t.ok(errs[1], "Settle of the fourth")
		t.ok(errs[2], "Settle of the head")
		for _, want := range ds[:2] {
			d := s.one()
			t.equal(d.ID, want.ID, "what comes again")
			s.ack(d)
		}
		s.idle()
	}
}

func extendKeepsTheLease(t *T) {
	s := t.shortLease()
	t.put("a")
	d := s.one()
	until, renewed := d.LeaseUntil, d.LeaseUntil.Add(-t.Caps.MinLease)
	for range 5 {
		t.before(renewed.Add(t.Caps.MinLease), func() {
			s.idleFor(t.Caps.MinLease / 2)
			renewed = time.Now()
			s.extend(d)
		})
	}
	t.equal(d.LeaseUntil, until, "LeaseUntil of a delivery after Extend, which must not change it")
	s.ack(d)
	s.idle()
	t.counts(0, 0, 0, 0)
}

// extendIsAFullLease: an extension counts from now, whatever was left.
func extendIsAFullLease(t *T) {
	s := t.shortLease()
	t.put("a")
	d := s.one()
	s.idleFor(t.Caps.MinLease * 3 / 4)
	extended := time.Now()
	s.extend(d)
	t.counted(s.one(), 1, 2, driver.CauseLeaseExpired)
	if waited := time.Since(extended); waited < t.Caps.MinLease-t.clockSlack() {
		t.Errorf("lost %v after it was extended by %v", waited, t.Caps.MinLease)
	}
}

func extendKeepsOnlyItsOwn(t *T) {
	if t.Caps.LeaseScope != driver.LeasePerMessage {
		t.Skip("one lease covers the partition")
	}
	s := t.shortLease()
	t.put("kept", "lost")
	ds := s.expect("kept", "lost")
	s.idleFor(t.Caps.MinLease / 2)
	extended := time.Now()
	s.extend(ds[0])
	t.before(extended.Add(t.Caps.MinLease), func() {
		t.counted(s.expect("lost")[0], 1, 2, driver.CauseLeaseExpired)
		s.ack(ds[0])
	})
}

// ackCrossesAnExtend: what is held is settled, whichever of two calls about it the backend hears first.
func ackCrossesAnExtend(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 3})
	for range 20 {
		t.putKeyed("k", "a1", "a2", "a3")
		t.fetched() // a claim of the first alone would be a run of one
		ds := s.expect("a1", "a2", "a3")
		ctx, extended := t.ctx(), make(chan error, 1)
		go func() { extended <- s.Extend(ctx, ds[:2])[1] }()
		s.ack(ds[0])
		t.ok(<-extended, "Extend of a follower while the head is acknowledged")
		s.extend(ds[1:]...)
		s.ack(ds[1:]...)
	}
	t.counts(0, 0, 0, 0)
}

// headsLossReturnsTheRun: a follower that is still leased must not be settled before a head that was lost.
func headsLossReturnsTheRun(t *T) {
	if t.Caps.LeaseScope != driver.LeasePerMessage {
		t.Skip("one lease covers the partition")
	}
	s := t.consumerWith(driver.SubscribeOptions{Lease: t.Caps.MinLease, MaxRun: 2})
	t.putKeyed("k", "a1", "a2")
	ds := s.expect("a1", "a2")
	s.idleFor(t.Caps.MinLease / 2)
	extended := time.Now()
	s.extend(ds[1])
	t.before(extended.Add(t.Caps.MinLease), func() { // later the follower is lost by itself
		again := s.expect("a1")[0]
		t.counted(again, 1, 2, driver.CauseLeaseExpired)
		s.refused(driver.Settlement{Delivery: ds[1], Outcome: driver.Ack})
		s.ack(again)
		last := s.expect("a2")[0]
		if last.Attempt != 1 || last.Deliveries != 1 {
			t.Errorf("the follower of a lost head came with attempt %d, deliveries %d; want it uncounted", last.Attempt,
				last.Deliveries)
		}
	})
}

func tokensDiffer(t *T) {
	s := t.consumer()
	t.put("a", "b")
	seen := map[string]bool{}
	for range 4 {
		ds := s.take(2)
		for _, d := range ds {
			text := d.Token.String()
			if text == "" || seen[text] {
				t.Errorf("token %q of %q is empty or was given before", text, d.Body)
			}
			seen[text] = true
		}
		s.release(ds...)
	}
}

func leaseUntilIsHonest(t *T) {
	s := t.shortLease()
	t.put("a")
	before := time.Now()
	d := s.one()
	after := time.Now()
	if d.LeaseUntil.After(after.Add(t.Caps.MinLease)) || d.LeaseUntil.Before(before) {
		t.Errorf("LeaseUntil is %v after the claim, for a lease of %v", d.LeaseUntil.Sub(before), t.Caps.MinLease)
	}
	if d.ClaimedAt.Before(before.Add(-time.Minute)) || d.ClaimedAt.After(after.Add(time.Minute)) {
		t.Errorf("ClaimedAt is %v, but the claim was at %v", d.ClaimedAt, before)
	}
}

func inflightShowsItsHolder(t *T) {
	t.put("a")
	s := t.subscribe(driver.SubscribeOptions{Instance: "host-7"})
	d := s.one()
	e := t.get(driver.Target{Topic: topic, ID: d.ID})
	t.equal(e.State, driver.StateInflight, "state")
	t.equal(e.Instance, "host-7", "holder")
}

func maxInflightIsABound(t *T) {
	s := t.subscribe(driver.SubscribeOptions{MaxInflight: 3})
	t.put(numbered("a", 6)...)
	ds := s.take(3)
	s.idle()
	s.ack(ds[0])
	more := s.take(1)
	s.idle()
	s.ack(ds[1], ds[2], more[0])
	s.take(2)
}
