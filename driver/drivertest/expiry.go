package drivertest

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// expired waits until n messages of the default group have expired, and demands that nothing of them is left.
func (t *T) expired(n uint64) {
	t.Helper()
	if t.Caps.Counts != driver.CountsExact {
		t.pass(unit)
		return
	}
	t.until("messages expire", func() bool { return t.groupStats(driver.DefaultGroup).Expired == n })
}

func expiredIsRemoved(t *T) {
	s := t.consumer()
	t.pause("", true)
	ms := []*driver.Message{t.msg("a", ttl(unit)), t.msg("b"), t.msg("c", ttl(unit), key("k"))}
	start := time.Now()
	t.publish(ms...)
	t.expired(2)
	if early := unit - time.Since(start); early > t.clockSlack() {
		t.Errorf("messages expired %v early", early)
	}
	t.counts(1, 0, 0, 0)
	for _, m := range []*driver.Message{ms[0], ms[2]} {
		_, err := t.Get(t.ctx(), driver.Target{Topic: topic, ID: m.ID})
		t.wantErr(err, driver.ErrNotFound, "Get of an expired message")
	}
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && st.Messages != 1 {
		t.Errorf("Messages is %d after two of three expired", st.Messages)
	}
	t.pause("", false)
	s.expect("b")
	s.idle()
}

func expiredNeverDelivered(t *T) {
	t.oneLane(topic)
	t.publish(t.msg("a", ttl(unit)), t.msg("b", ttl(unit), key("k")), t.msg("c"))
	t.pass(unit + unit/2)
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("c")
	s.idle()
}

func expiredToTheDeadLetters(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	s := t.subscribe(driver.SubscribeOptions{})
	t.pause("", true)
	m := t.msg("a", ttl(unit))
	t.publish(m)
	t.until("the message dies", func() bool { return len(t.browse(driver.StateDead)) == 1 })
	dl := t.deadLetter()
	t.whole(dl.Message, m)
	t.equal(dl.Reason, driver.ReasonExpired, "reason")
	t.equal(dl.Action, driver.ActionDiscard, "advice")
	t.counts(0, 0, 0, 1)
	t.pause("", false)
	s.idle()
}

// eachIsDeadOrExpired: what became a dead letter is counted as that, and nothing twice.
func eachIsDeadOrExpired(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	t.subscribe(driver.SubscribeOptions{})
	t.pause("", true)
	t.publish(t.msgs(make([]string, 4), ttl(unit))...)
	t.until("the messages die", func() bool { return t.groupStats(driver.DefaultGroup).Died == 4 })
	g := t.groupStats(driver.DefaultGroup)
	t.equal([]uint64{g.Received, g.Expired, uint64(g.Dead)}, []uint64{4, 0, 4}, "received, expired, dead")
}

// expiryIsNoAttempt: the history of what expired while it waited has its failures, and nothing else.
func expiryIsNoAttempt(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	s := t.subscribe(driver.SubscribeOptions{})
	end := time.Now().Add(3 * unit)
	t.publish(t.msg("a", ttl(3*unit)))
	d := s.one()
	t.before(end, func() { s.retry(d, time.Hour) })
	t.until("the message dies", func() bool { return len(t.browse(driver.StateDead)) == 1 })
	dl := t.deadLetter()
	if dl.Reason != driver.ReasonExpired || dl.Attempts != 1 || len(dl.History) != 1 {
		t.Errorf("died of %s after %d attempts, history %+v; want expired with the failure of its only attempt", dl.Reason,
			dl.Attempts, dl.History)
	}
}

// lastAttemptCounts: an attempt that failed after the TTL of its message is one of those that the dead letter tells of.
func lastAttemptCounts(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	s := t.subscribe(driver.SubscribeOptions{})
	for i, wait := range []time.Duration{0, time.Hour} {
		for _, k := range []string{"", "k"} {
			m := t.msg("a", ttl(3*unit)) // long enough to be claimed
			m.Key = k
			t.publish(m)
			d := s.one()
			s.idleFor(4 * unit)
			s.retry(d, wait)
			t.until("the message dies", func() bool { return len(t.browse(driver.StateDead)) == 1 })
			dl := t.deadLetter()
			t.equal(dl.Reason, driver.ReasonExpired, "reason")
			t.equal([]int{dl.Attempts, len(dl.History)}, []int{1, 1}, fmt.Sprintf("attempts and length of the history %d", i))
			t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, Group: driver.DefaultGroup, ID: m.ID}})[0], "Delete")
		}
	}
}

// replayedFromBehindAHead: what expired behind the head of its key, which is held, is replayed: as it was, or edited to
// another lane, it joins the tail of its key; edited to another key it waits for nobody.
func replayedFromBehindAHead(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 1})
	for k, edit := range map[string]*driver.Message{"plain": nil, "lane": {Key: "lane", Priority: driver.Urgent},
		"key": {Key: "j"}} {
		head, dies, last := t.msg("head", key(k)), t.msg("dies", key(k), ttl(unit)), t.msg("last", key(k))
		t.publish(head, dies, last)
		held := s.expect("head")
		t.until("the message dies", func() bool { return len(t.browse(driver.StateDead)) == 1 })
		to := driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: dies.ID}, Edit: edit}
		if edit != nil {
			edit.Topic, edit.Body = topic, dies.Body
		}
		t.move(to)
		if k == "key" {
			s.ack(s.expect("dies")...)
		}
		s.idle()
		s.ack(held...)
		s.ack(s.expect("last")...)
		if k != "key" {
			s.ack(s.expect("dies")...)
		}
		s.idle()
		t.counts(0, 0, 0, 0)
		t.balanced()
	}
}

func runningDeliveryMayFinish(t *T) {
	s := t.consumer()
	t.publish(t.msg("a", ttl(3*unit))) // long enough to be claimed
	d := s.one()
	s.idleFor(4 * unit)
	s.extend(d)
	s.ack(d)
	if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && (g.Acked != 1 || g.Expired != 0) {
		t.Errorf("Stats %+v, want one acked, none expired", g)
	}
}

func expiresWhenReturned(t *T) {
	s := t.consumer()
	t.publish(t.msg("a", ttl(3*unit)), t.msg("b", ttl(3*unit)))
	ds := s.take(2)
	s.idleFor(4 * unit)
	s.release(ds[0])
	s.retry(ds[1], 0)
	s.idle()
	t.expired(2)
	t.counts(0, 0, 0, 0)
}

// expiresWhenReturnedFromARun is what a worker does with a follower that it held for too long.
func expiresWhenReturnedFromARun(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 4})
	t.publish(t.msg("a1", key("k")), t.msg("a2", key("k"), ttl(unit)), t.msg("a3", key("k"), ttl(unit)),
		t.msg("a4", key("k")))
	ds := s.expect("a1", "a2", "a3", "a4")
	s.idleFor(2 * unit)
	s.ack(ds[0])
	s.park(ds[1], unit/100)
	d := s.expect("a4")[0] // a3 came back with a2
	t.counted(d, 1, 1, d.Cause)
	s.ack(d)
	s.idle()
	t.expired(2)
	t.counts(0, 0, 0, 0)
}

func expiresWhenItsLeaseIsLost(t *T) {
	const live = 2 * unit // shorter than the lease
	s := t.consumerWith(driver.SubscribeOptions{Lease: t.fateLease()})
	end := time.Now().Add(live)
	t.publish(t.msg("a", ttl(live)), t.msg("b1", key("k"), ttl(live)), t.msg("b2", key("k")))
	t.before(end, func() {
		t.equal(sorted(bodies(s.take(2))), []string{"a", "b1"}, "deliveries")
	})
	s.expect("b2") // once b1 is lost, and expires
	s.idle()
	t.expired(2)
}

func expiresWhileWaiting(t *T) {
	s := t.consumer()
	end := time.Now().Add(3 * unit)
	t.publish(t.msg("a", ttl(3*unit)), t.msg("b", ttl(3*unit)))
	ds := s.take(2)
	t.before(end, func() {
		s.retry(ds[0], time.Hour)
		s.park(ds[1], time.Hour)
		t.counts(0, 0, 2, 0)
	})
	t.expired(2)
	t.counts(0, 0, 0, 0)
}

func expiresBeforeDue(t *T) {
	t.oneLane(topic)
	at := time.Now().Add(time.Hour)
	t.publish(t.msg("held", delay(driver.Hold), ttl(unit)), t.msg("scheduled", ttl(unit),
		func(m *driver.Message) { m.At = at }))
	t.until("messages expire", func() bool { return t.stats(topic).Held+t.stats(topic).Delayed == 0 })
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact &&
		(st.Expired != 2 || st.Fanned != 0 || st.Messages != 0) {
		t.Errorf("Stats %+v, want two expired before they were due", st)
	}
}

// expiredBeforeDueToTheDeadLetters: what is held, or due after it has expired, dies in every group.
func expiredBeforeDueToTheDeadLetters(t *T) {
	t.configure(topic, driver.TopicConfig{ExpiredDead: true})
	groups := []string{"audit", "billing"}
	for _, g := range groups {
		t.ok(t.EnsureGroup(t.ctx(), topic, g, driver.GroupOptions{}), "EnsureGroup")
	}
	ms := []*driver.Message{t.msg("held", delay(driver.Hold), ttl(3*unit), key("k")),
		t.msg("delayed", delay(2*unit), ttl(3*unit)), t.msg("scheduled", ttl(3*unit))}
	begun := time.Now()
	ms[2].At = begun.Add(time.Hour)
	t.publish(ms...)
	t.before(begun.Add(unit), func() { // long before it is due, or expires
		t.move(driver.Move{Target: driver.Target{Topic: topic, ID: ms[1].ID}, After: time.Hour})
	})
	for _, g := range groups {
		t.until("the messages die in "+g, func() bool { return len(t.browseGroup(g, driver.StateDead)) == len(ms) })
		for _, m := range ms {
			e := t.get(driver.Target{Topic: topic, Group: g, ID: m.ID})
			t.equal([]any{e.State, e.Dead.Reason, string(e.Dead.Message.Body), e.Dead.Message.Key, e.Dead.Attempts},
				[]any{driver.StateDead, driver.ReasonExpired, string(m.Body), m.Key, 0}, "dead letter of what was "+string(m.Body))
			t.equal([]any{e.Dead.Origin.Group, len(e.Dead.History)}, []any{g, 0}, "where it died, and failures")
		}
		t.countsOf(g, 0, 0, 0, int64(len(ms)))
	}
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact {
		t.equal([]uint64{st.Expired, st.Fanned, uint64(st.Held + st.Delayed), uint64(st.Messages)}, []uint64{3, 0, 0, 0},
			"expired, fanned, not due, and unsettled")
	}
	s := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	s.idle()
	for _, m := range ms {
		t.move(driver.Move{Target: driver.Target{Topic: topic, Group: "audit", ID: m.ID}})
		d := s.expect(string(m.Body))[0]
		t.equal([]any{d.ID, d.Attempt, d.Cause}, []any{m.ID, 1, driver.CauseReplay}, "replayed letter")
		s.ack(d)
	}
	t.equal(len(t.browseGroup("audit", driver.StateDead)), 0, "letters after the replay")
	t.equal(len(t.browseGroup("billing", driver.StateDead)), len(ms), "letters of the other group")
	t.sound(topic)
}

func expiryUnblocksTheKey(t *T) {
	s := t.consumer()
	end := time.Now().Add(3 * unit)
	t.publish(t.msg("a1", key("k"), ttl(3*unit)), t.msg("a2", key("k")))
	d := s.expect("a1")[0]
	t.before(end, func() {
		s.retry(d, time.Hour)
		s.idle()
	})
	s.expect("a2") // once a1 has expired
	t.expired(1)
}

func expiryOfAReadyHead(t *T) {
	t.oneLane(topic)
	t.publish(t.msg("a1", key("k"), ttl(unit)), t.msg("a2", key("k")))
	t.pass(2 * unit)
	t.subscribe(driver.SubscribeOptions{}).expect("a2")
}

func noTTLNeverExpires(t *T) {
	s := t.consumer()
	t.put("a")
	if t.Virtual {
		t.pass(25 * time.Hour)
	}
	t.equal(t.get(driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: s.one().ID}).ExpiresAt.IsZero(), true,
		"no expiry")
}
