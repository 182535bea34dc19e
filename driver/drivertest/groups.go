package drivertest

import (
	"slices"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

func sorted(s []string) []string { slices.Sort(s); return s }

// groupsOf returns the names of the groups of the topic, as Topics shows them.
func (t *T) groupsOf(topic string) []string {
	t.Helper()
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	for _, info := range infos {
		if info.Topic == topic {
			return info.Groups
		}
	}
	t.Fatalf("Topics does not show %q: %+v", topic, infos)
	return nil
}

func defaultGroupAtFirstPublish(t *T) {
	t.put("a")
	t.equal(t.groupsOf(topic), []string{driver.DefaultGroup}, "groups after the first publish")
	t.subscribe(driver.SubscribeOptions{}).expect("a")
}

func defaultGroupAtFirstDelayedPublish(t *T) {
	t.publish(t.msg("a", delay(unit)))
	t.equal(t.groupsOf(topic), []string{driver.DefaultGroup}, "groups after the first publish")
	t.subscribe(driver.SubscribeOptions{}).expect("a")
}

func noDefaultGroupBesideAnother(t *T) {
	t.group("audit")
	t.put("a")
	t.equal(t.groupsOf(topic), []string{"audit"}, "groups of a topic that had one before the first publish")
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).expect("a")
}

func subscribeCreates(t *T) {
	s := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	t.equal(t.groupsOf(topic), []string{"audit"}, "groups after Subscribe")
	t.equal(t.groupStats("audit").Consumers, 1, "consumers")
	t.put("a")
	s.expect("a")
	t.equal(t.groupsOf(topic), []string{"audit"}, "groups after the publish")
}

func everyGroupGetsAll(t *T) {
	t.group("audit")
	t.group("billing")
	want := numbered("a", 5)
	t.put(want...)
	for _, g := range []string{"audit", "billing"} {
		s := t.subscribe(driver.SubscribeOptions{Group: g})
		ds := s.expect(want...)
		for _, d := range ds {
			t.equal(d.Group, g, "group of the delivery")
		}
		s.ack(ds...)
	}
	s := t.stats(topic)
	if t.Caps.Counts == driver.CountsExact && (s.Published != 5 || s.Fanned != 5 || s.Messages != 0) {
		t.Errorf("Stats %+v, want 5 published, 5 fanned out, 0 messages left", s)
	}
}

func groupGetsWhatComesAfterIt(t *T) {
	t.group("old")
	t.put("before")
	t.group("new")
	t.put("after")
	t.subscribe(driver.SubscribeOptions{Group: "old"}).expect("before", "after")
	s := t.subscribe(driver.SubscribeOptions{Group: "new"})
	s.expect("after")
	s.idle()
}

func delayedFansOutWhenDue(t *T) {
	t.group("old")
	t.publish(t.msg("a", delay(3*unit))) // long enough for another group
	t.group("new")
	t.subscribe(driver.SubscribeOptions{Group: "old"}).expect("a")
	t.subscribe(driver.SubscribeOptions{Group: "new"}).expect("a")
}

func retryBelongsToOneGroup(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a")
	a, b := t.subscribe(driver.SubscribeOptions{Group: "audit"}), t.subscribe(driver.SubscribeOptions{Group: "billing"})
	d := b.one()
	a.retry(a.one(), 0)
	t.counted(a.one(), 2, 1, driver.CauseRetry)
	b.idle()
	b.retry(d, 0)
	t.counted(b.one(), 2, 1, driver.CauseRetry)
	a.idle()
}

func ackBelongsToOneGroup(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a")
	a := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	a.ack(a.one())
	t.countsOf("audit", 0, 0, 0, 0)
	t.countsOf("billing", 1, 0, 0, 0)
	t.subscribe(driver.SubscribeOptions{Group: "billing"}).expect("a")
}

func oneConsumerOfAGroup(t *T) {
	const n = 60
	subs := []*sub{t.subscribe(driver.SubscribeOptions{Instance: "1"}),
		t.subscribe(driver.SubscribeOptions{Instance: "2"}), t.subscribe(driver.SubscribeOptions{Instance: "3"})}
	t.put(numbered("a", n)...)
	var mu sync.Mutex
	got := map[string]int{}
	t.workers(subs, n, func(_ *sub, d *driver.Delivery) driver.Outcome {
		mu.Lock()
		defer mu.Unlock()
		got[string(d.Body)]++
		return driver.Ack
	})
	for b, times := range got {
		if times != 1 {
			t.Errorf("%s was delivered %d times", b, times)
		}
	}
	t.equal(len(got), n, "messages delivered")
}

func orderFixedByFirstMember(t *T) {
	t.put("a") // creates the group, which has no member and so no order yet
	t.subscribe(driver.SubscribeOptions{Order: driver.Relaxed})
	t.equal(t.groupStats(driver.DefaultGroup).Order, driver.Relaxed, "order of the group")
	_, err := t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "2", Lease: longLease,
		Order: driver.Strict})
	t.wantErr(err, driver.ErrConflict, "Subscribe with another order")
	t.subscribe(driver.SubscribeOptions{Order: driver.Relaxed, Instance: "3"})
}
