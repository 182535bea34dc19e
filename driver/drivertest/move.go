package drivertest

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// move demands that each message is moved.
func (t *T) move(ms ...driver.Move) {
	t.Helper()
	for i, err := range t.Move(t.ctx(), ms) {
		t.ok(err, "Move of "+ms[i].ID)
	}
}

func moveRunsNow(t *T) {
	s := t.consumer()
	m := t.msg("delayed", delay(time.Hour))
	t.publish(t.msg("waiting"), m)
	d := s.expect("waiting")[0]
	s.retry(d, time.Hour)
	t.move(driver.Move{Target: driver.Target{Topic: topic, ID: m.ID}})
	s.expect("delayed")
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}})
	d = s.expect("waiting")[0]
	t.equal(d.Attempt, 2, "attempt of a retry that was run now")
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && (st.Delayed != 0 || st.Fanned != 2) {
		t.Errorf("Stats %+v, want both fanned out", st)
	}
}

func moveReschedules(t *T) {
	s := t.consumer()
	m := t.msg("delayed", delay(time.Hour))
	t.publish(m)
	start := time.Now()
	// on a busy server it takes some of it
	t.move(driver.Move{Target: driver.Target{Topic: topic, ID: m.ID}, After: 3 * unit})
	t.before(start.Add(3*unit), s.idle)
	s.expect("delayed")
	t.onTime(start.Add(3*unit), "the rescheduled message")
}

func movePostpones(t *T) {
	s := t.consumer()
	wait := unit
	m := t.msg("delayed", delay(wait))
	t.publish(m)
	later := func() error {
		return t.Move(t.ctx(), []driver.Move{{Target: driver.Target{Topic: topic, ID: m.ID}, After: time.Hour}})[0]
	}
	err := later()
	for ; err != nil && wait < 16*unit; err = later() { // it was due before a slow backend could move it, or nobody knows
		if errors.Is(err, driver.ErrUnknown) {
			s.absorb(2 * wait)
		} else {
			t.wantErr(err, driver.ErrConflict, "Move of a message that became due")
			s.ack(s.expect("delayed")...)
		}
		wait *= 2
		m = t.msg("delayed", delay(wait))
		t.publish(m)
	}
	t.ok(err, "Move of a delayed message")
	s.idleFor(2 * wait)
	t.equal(t.get(driver.Target{Topic: topic, ID: m.ID}).State, driver.StateDelayed, "state")
}

func moveEdits(t *T) {
	s := t.consumer()
	m := t.msg("old", delay(time.Hour))
	t.publish(m)
	edit := &driver.Message{ID: "ignored", Topic: topic, Body: []byte("new"), Headers: map[string]string{"by": "operator"}}
	t.move(driver.Move{Target: driver.Target{Topic: topic, ID: m.ID}, Edit: edit})
	edit.Body[0] = 'X' // nothing is retained
	d := s.expect("new")[0]
	t.equal(d.ID, m.ID, "id of the edited message")
	t.equal(d.Headers, map[string]string{"by": "operator"}, "headers of the edited message")
}

func moveOfOthersIsAConflict(t *T) {
	s := t.consumer()
	t.put("inflight")
	d := s.one()
	ready := t.msg("ready")
	t.publish(ready)
	for _, id := range []string{d.ID, ready.ID} {
		err := t.Move(t.ctx(), []driver.Move{{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: id}}})[0]
		t.wantErr(err, driver.ErrConflict, "Move of a message that is in flight or ready")
	}
	t.counts(1, 1, 0, 0)
	s.ack(d)
	s.expect("ready")
}

// moveOfWhatIsSettled: what a group has settled goes to no other group, whether that has settled it or not. Where it is
// kept it is found, and not dead; else it is not there.
func moveOfWhatIsSettled(t *T) {
	keeps := []time.Duration{0, time.Hour}
	if t.Caps.History == driver.HistoryNone {
		keeps = keeps[:1]
	}
	t.group("audit")
	t.group("billing")
	for _, keep := range keeps {
		t.ok(t.AlterTopic(t.ctx(), topic, t.onePartition(driver.TopicConfig{Keep: keep})), "AlterTopic")
		ms := t.msgs([]string{"in one", "in both"})
		t.publish(ms...)
		a, b := t.subscribe(driver.SubscribeOptions{Group: "audit"}), t.subscribe(driver.SubscribeOptions{Group: "billing"})
		a.ack(a.take(2)...)
		ds := b.expect("in one", "in both")
		b.ack(ds[1])
		for _, m := range ms {
			target := driver.Target{Topic: topic, Group: "audit", ID: m.ID}
			want := driver.ErrNotFound
			if _, err := t.Get(t.ctx(), target); err == nil {
				want = driver.ErrConflict
			}
			err := t.Move(t.ctx(), []driver.Move{{Target: target, To: "billing"}})[0]
			t.wantErr(err, want, "Move to another group of a message that is settled "+string(m.Body))
		}
		b.ack(ds[0])
		a.idle()
		b.idle()
		a.leave()
		b.leave()
	}
}

// moveNamesAGroup: what waits in a group or has died there is moved in that group alone, which must be named: others
// may have the same message.
func moveNamesAGroup(t *T) {
	s := t.consumer()
	t.put("dead", "waiting")
	s.bury(s.expect("dead")[0])
	s.retry(s.expect("waiting")[0], time.Hour)
	for _, state := range []driver.State{driver.StateDead, driver.StateWaiting} {
		e := t.browse(state)[0]
		for _, target := range []driver.Target{{Topic: topic, ID: e.ID}, {Topic: topic, Ref: e.Ref}} {
			err := t.Move(t.ctx(), []driver.Move{{Target: target}})[0]
			t.wantErr(err, driver.ErrInvalid, "Move without a group of a message that is "+string(state))
		}
	}
	s.idle()
	t.counts(0, 0, 1, 1)
}

// moveKeepsKeyOrder: the head of a key that is run now is still its head.
func moveKeepsKeyOrder(t *T) {
	s := t.consumer()
	t.putKeyed("k", "a1", "a2")
	d := s.expect("a1")[0]
	s.retry(d, time.Hour)
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}})
	t.equal(bodies(s.gather(2)), []string{"a1", "a2"}, "order of the key")
}

// moveOutOfItsKey: a message that waits behind others of its key goes to another one.
func moveOutOfItsKey(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 4})
	t.putKeyed("k", "a1", "a2", "a3", "a4")
	ds := s.take(4)
	s.park(ds[3], time.Hour) // the last first: a return takes those behind it back
	s.park(ds[1], time.Hour)
	s.release(ds[0])
	for _, d := range []*driver.Delivery{ds[1], ds[3]} {
		edit := t.msg(string(d.Body), key("other"))
		t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}, Edit: edit})
	}
	t.putKeyed("k", "a5")
	t.putKeyed("other", "a6")
	got := map[string][]string{}
	for range 6 {
		d := s.one()
		got[d.Key] = append(got[d.Key], string(d.Body))
		s.ack(d)
	}
	t.equal(got, map[string][]string{"k": {"a1", "a3", "a5"}, "other": {"a2", "a4", "a6"}}, "order of the keys")
	s.idle()
	t.counts(0, 0, 0, 0)
}

// moveToAnotherLaneInItsKey: a message that waits behind others of its key gets another priority and keeps its place.
func moveToAnotherLaneInItsKey(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{MaxRun: 4})
	t.putKeyed("k", "a1", "a2", "a3", "a4")
	ds := s.take(4)
	s.park(ds[2], time.Hour) // the last first: a return takes those behind it back
	s.park(ds[1], time.Hour)
	s.release(ds[0])
	for i, after := range []time.Duration{0, unit / 2} {
		edit := t.msg(string(ds[i+1].Body), key("k"), prio(driver.Urgent))
		t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[i+1].ID}, Edit: edit,
			After: after})
	}
	s.ack(s.expect("a1")...)
	s.retry(s.expect("a2")[0], unit/2)
	t.equal(bodies(s.gather(3)), []string{"a2", "a3", "a4"}, "order of the key")
	s.idle()
	t.counts(0, 0, 0, 0)
}

func moveWakesAReceive(t *T) {
	s := t.consumer()
	m := t.msg("a", delay(driver.Hold))
	t.publish(m)
	waiting := s.inBackground()
	t.pass(quiet)
	t.move(driver.Move{Target: driver.Target{Topic: topic, ID: m.ID}})
	t.ok(<-waiting, "Receive that waited while the message was moved")
}
