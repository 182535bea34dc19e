package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// purgeTakesWhatIsQueued: ready, waiting and delayed; not what is in flight, dead, held, or comes later.
func purgeTakesWhatIsQueued(t *T) {
	s := t.consumer()
	t.put("dead", "waiting", "inflight")
	ds := s.expect("dead", "waiting", "inflight")
	s.bury(ds[0])
	s.retry(ds[1], time.Hour)
	t.put("ready1", "ready2")
	t.publish(t.msg("delayed", delay(time.Hour)), t.msg("held", delay(driver.Hold)))
	n, err := t.Purge(t.ctx(), topic, "")
	t.ok(err, "Purge")
	t.equal(n, 4, "entries purged")
	t.counts(0, 1, 0, 1)
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact &&
		(st.Delayed != 0 || st.Held != 1 || st.Cancelled != 1 || st.Groups[0].Cancelled != 3) {
		t.Errorf("Stats %+v, want 1 cancelled before it was due and 3 in the group", st)
	}
	t.put("later")
	s.ack(ds[2])
	s.expect("later")
	s.idle()
}

func purgeOfOneGroup(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a", "b")
	t.before(time.Now().Add(unit), func() {
		t.publish(t.msg("delayed", delay(unit)))
		n, err := t.Purge(t.ctx(), topic, "audit")
		t.ok(err, "Purge")
		t.equal(n, 2, "entries purged")
		t.countsOf("billing", 2, 0, 0, 0)
	})
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).expect("delayed") // it belonged to the topic
	t.subscribe(driver.SubscribeOptions{Group: "billing"}).expect("a", "b", "delayed")
}

// purgeOfWhatOneGroupHasNot: a message that was deleted for one group is gone when the other one is purged, in either
// order of the two.
func purgeOfWhatOneGroupHasNot(t *T) {
	for _, without := range []string{"audit", "billing"} {
		t.group("audit")
		t.group("billing")
		m := t.msg("half")
		t.publish(m)
		t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, Group: without, ID: m.ID}})[0], "Delete for "+without)
		n, err := t.Purge(t.ctx(), topic, "")
		t.ok(err, "Purge")
		t.equal(n, 1, "entries purged")
		t.put("later")
		for _, g := range []string{"audit", "billing"} {
			s := t.subscribe(driver.SubscribeOptions{Group: g})
			s.ack(s.expect("later")...)
			s.leave()
		}
	}
}

func purgeUnblocksKeys(t *T) {
	s := t.consumer()
	t.putKeyed("k", "a1", "a2")
	s.retry(s.expect("a1")[0], time.Hour)
	_, err := t.Purge(t.ctx(), topic, "")
	t.ok(err, "Purge")
	t.putKeyed("k", "a3")
	s.expect("a3")
}

// deleteInEachState removes one message from each place a message can be in.
func deleteInEachState(t *T) {
	s := t.consumer()
	t.put("dead", "waiting", "inflight")
	ds := s.expect("dead", "waiting", "inflight")
	s.bury(ds[0])
	s.retry(ds[1], time.Hour)
	delayed, held, ready := t.msg("delayed", delay(time.Hour)), t.msg("held", delay(driver.Hold)), t.msg("ready")
	t.publish(delayed, held, ready)
	var ts []driver.Target
	for _, id := range []string{ds[0].ID, ds[1].ID, ds[2].ID, delayed.ID, held.ID, ready.ID} {
		ts = append(ts, driver.Target{Topic: topic, ID: id})
	}
	for i, err := range t.Delete(t.ctx(), ts) {
		if i == 2 {
			t.wantErr(err, driver.ErrConflict, "Delete of a message in flight")
		} else {
			t.ok(err, "Delete of "+ts[i].ID)
		}
	}
	t.counts(0, 1, 0, 0)
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact &&
		(st.Delayed != 0 || st.Held != 0 || st.Cancelled != 2 || st.Groups[0].Cancelled != 3 || st.Messages != 1) {
		t.Errorf("Stats %+v, want only the message in flight left", st)
	}
	s.ack(ds[2])
	s.idle()
}

func deleteForOneGroup(t *T) {
	t.group("audit")
	t.group("billing")
	m := t.msg("a")
	t.publish(m)
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, Group: "audit", ID: m.ID}})[0], "Delete for one group")
	t.countsOf("audit", 0, 0, 0, 0)
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).idle()
	t.subscribe(driver.SubscribeOptions{Group: "billing"}).expect("a")
}

// deleteOfNoGroup: a message that is delayed or held belongs to the topic, so that who names a group does not mean it.
func deleteOfNoGroup(t *T) {
	t.group("audit")
	t.group("billing")
	for _, m := range []*driver.Message{t.msg("delayed", delay(time.Hour)), t.msg("held", delay(driver.Hold))} {
		targets := []driver.Target{{Topic: topic, Group: "audit", ID: m.ID}}
		if ref := t.publish(m)[0].Ref; !ref.IsZero() { // not every backend can tell where it will be
			targets = append(targets, driver.Target{Topic: topic, Group: "audit", Ref: ref})
		}
		for _, target := range targets {
			t.wantErr(t.Delete(t.ctx(), []driver.Target{target})[0], driver.ErrNotFound, "Delete for one group")
			errs := t.Move(t.ctx(), []driver.Move{{Target: target}, {Target: target, After: time.Hour},
				{Target: target, To: "billing"}})
			for _, err := range errs {
				t.wantErr(err, driver.ErrNotFound, "Move in one group")
			}
		}
		t.subscribe(driver.SubscribeOptions{Group: "audit"}).idle()
		t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: m.ID}})[0], "Delete")
	}
}

func deleteForAllGroups(t *T) {
	t.group("audit")
	t.group("billing")
	m := t.msg("a")
	t.publish(m)
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: m.ID}})[0], "Delete for all groups")
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).idle()
	t.subscribe(driver.SubscribeOptions{Group: "billing"}).idle()
}

func deleteUnblocksTheKey(t *T) {
	s := t.consumer()
	t.putKeyed("k", "a1", "a2", "a3")
	d := s.expect("a1")[0]
	s.retry(d, time.Hour)
	s.idle()
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: d.ID}})[0], "Delete of the head of a key")
	t.equal(bodies(s.gather(2)), []string{"a2", "a3"}, "followers")
}

// deleteOfWhatIsKept: a message that is done and can be found can be removed, in one group or in all. A log that cannot
// let go of a single one says so.
func deleteOfWhatIsKept(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: time.Hour})
	for _, g := range []string{"audit", "billing"} {
		t.ok(t.EnsureGroup(t.ctx(), topic, g, driver.GroupOptions{}), "EnsureGroup")
	}
	ms := t.msgs([]string{"a", "b", "c"})
	t.publish(ms...)
	for _, g := range []string{"audit", "billing"} {
		s := t.subscribe(driver.SubscribeOptions{Group: g})
		s.ack(s.take(3)...)
		s.leave()
	}
	at := func(group string, i int) driver.Target {
		return driver.Target{Topic: topic, Group: group, ID: ms[i].ID}
	}
	remove := func(target driver.Target) error { return t.Delete(t.ctx(), []driver.Target{target})[0] }
	if !t.Caps.PhysicalDelete {
		t.wantErr(remove(at("audit", 0)), driver.ErrNotFound, "Delete of a kept message")
		t.equal(t.get(at("audit", 0)).State, driver.StateDone, "state of a kept message")
		return
	}
	for _, group := range []string{"audit", "billing"} {
		t.equal(t.get(at(group, 0)).State, driver.StateDone, "state of a kept message")
		t.ok(remove(at(group, 0)), "Delete of a kept message for one group")
		_, err := t.Get(t.ctx(), at(group, 0))
		t.wantErr(err, driver.ErrNotFound, "Get of a kept message that was deleted for the group")
		t.wantErr(remove(at(group, 0)), driver.ErrNotFound, "second Delete for one group")
		t.sound(topic)
	}
	ready := t.msg("ready")
	t.publish(ready)
	ms = append(ms, ready)
	t.ok(remove(at("", 1)), "Delete of a kept message")
	t.ok(remove(at("", 3)), "Delete of a ready message")
	for _, i := range []int{0, 1, 3} {
		_, err := t.Get(t.ctx(), at("", i))
		t.wantErr(err, driver.ErrNotFound, "Get of a message that was deleted for all groups")
		t.wantErr(remove(at("", i)), driver.ErrNotFound, "second Delete")
	}
	dead := at("audit", 2)
	dead.Death = 1
	t.wantErr(remove(dead), driver.ErrConflict, "Delete of what is not that dead letter")
	report, err := t.Reset(t.ctx(), topic, "audit", driver.ResetOptions{To: driver.Position{From: driver.FromBegin}})
	t.ok(err, "Reset")
	t.equal(report, driver.ResetReport{Replayed: 1}, "report of the reset")
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).expect("c")
}
