package drivertest

import (
	"errors"
	"slices"
	"sync"

	"github.com/ferrymq/ferry/driver"
)

// refusedChange demands an error of Move and of Delete of a target.
func (t *T) refusedChange(at driver.Target, want error, what string) {
	t.Helper()
	t.wantErr(t.Move(t.ctx(), []driver.Move{{Target: at}})[0], want, "Move of "+what)
	t.wantErr(t.Delete(t.ctx(), []driver.Target{at})[0], want, "Delete of "+what)
}

// onlyThatDeath: a target that names a death reaches neither the message that lives nor a later death of it.
func onlyThatDeath(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	first := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID, Death: 1}
	second := first
	second.Death = 2
	s.bury(d)
	t.refusedChange(second, driver.ErrConflict, "a death to come")
	t.move(driver.Move{Target: first})
	t.refusedChange(first, driver.ErrConflict, "a message that is ready again")
	d = s.expect("a")[0]
	t.refusedChange(first, driver.ErrConflict, "a message that is in flight again")
	s.bury(d)
	t.refusedChange(first, driver.ErrConflict, "an earlier death")
	t.equal(t.deadLetter().Rounds, 1, "rounds of the letter that stayed")
	t.ok(t.Delete(t.ctx(), []driver.Target{second})[0], "Delete of the second death")
	t.refusedChange(second, driver.ErrNotFound, "a deleted letter")
	t.refusedChange(driver.Target{Topic: topic, ID: d.ID, Death: 1}, driver.ErrInvalid, "a death in no group")
}

// replayAndDeleteRace: of a replay and a removal at the same time the letter is in the queue if the replay says so, and
// nowhere otherwise.
func replayAndDeleteRace(t *T) {
	s := t.consumer()
	t.put(numbered("a", 20)...)
	ds := s.take(20)
	bodies, moved := map[string]bool{}, make([]error, len(ds))
	for _, d := range ds {
		s.bury(d)
	}
	var both sync.WaitGroup
	for i, d := range ds {
		at := driver.Target{Topic: topic, Group: driver.DefaultGroup, Ref: d.Ref, ID: d.ID, Death: 1}
		both.Go(func() { moved[i] = t.Move(t.ctx(), []driver.Move{{Target: at}})[0] })
		both.Go(func() { _ = t.Delete(t.ctx(), []driver.Target{at})[0] })
		both.Wait()
		if moved[i] == nil {
			bodies[string(d.Body)] = true
		} else if !errors.Is(moved[i], driver.ErrNotFound) && !errors.Is(moved[i], driver.ErrConflict) {
			t.Errorf("Move beside Delete: %v", moved[i])
		}
	}
	for _, d := range s.take(len(bodies)) {
		if !bodies[string(d.Body)] {
			t.Errorf("%s is delivered, although its replay failed", d.Body)
		}
		s.ack(d)
	}
	s.idle()
	t.equal(len(t.browse(driver.StateDead)), 0, "dead letters left")
}

// replayToAnotherGroup: the letter leaves its group and is received by the other one alone, once that has settled it.
func replayToAnotherGroup(t *T) {
	for _, g := range []string{"audit", "billing", "mail"} {
		t.group(g)
	}
	a, b, c := t.subscribe(driver.SubscribeOptions{Group: "audit"}),
		t.subscribe(driver.SubscribeOptions{Group: "billing"}), t.subscribe(driver.SubscribeOptions{Group: "mail"})
	t.publish(t.msg("a", key("k")))
	d := a.one()
	to := driver.Move{Target: driver.Target{Topic: topic, Group: "audit", ID: d.ID}, To: "billing"}
	t.wantErr(t.Move(t.ctx(), []driver.Move{to})[0], driver.ErrConflict, "Move of a message in flight to another group")
	a.bury(d)
	t.wantErr(t.Move(t.ctx(), []driver.Move{to})[0], driver.ErrConflict, "Move to a group that has not had the message")
	b.ack(b.one())
	c.ack(c.one())
	for wrong, want := range map[string]error{"nobody": driver.ErrNotFound, "audit": driver.ErrInvalid} {
		t.wantErr(t.Move(t.ctx(), []driver.Move{{Target: to.Target, To: wrong}})[0], want, "Move to group "+wrong)
	}
	t.move(to)
	t.countsOf("audit", 0, 0, 0, 0)
	t.countsOf("billing", 1, 0, 0, 0)
	again := b.expect("a")[0]
	if again.Attempt != 1 || again.Cause != driver.CauseReplay || again.ID != d.ID || again.Key != "k" {
		t.Fatalf("handed over as %s, want attempt 1, cause replay, id %s", describe([]*driver.Delivery{again}), d.ID)
	}
	a.idle()
	c.idle()
	b.bury(again)
	letters := t.browseGroup("billing", driver.StateDead)
	if len(letters) != 1 || letters[0].Dead.Rounds != 1 || letters[0].Dead.Origin.Group != "billing" {
		t.Fatalf("%d letters %+v, want one of billing in its second round", len(letters), letters)
	}
	t.equal(len(letters[0].Dead.History), 1, "failures in the group that got the letter")
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: "billing", ID: d.ID}, To: "mail",
		Edit: &driver.Message{Topic: topic, Key: "j", Body: []byte("mended")}, After: quiet})
	c.ack(c.expect("mended")...)
	t.balanced()
}

// replayToWhereItWasDeleted: a letter goes to a group in which the message was deleted before its turn, under another
// key. Where a trace of it is still in the way, that is a conflict until the group has come past it.
func replayToWhereItWasDeleted(t *T) {
	for _, g := range []string{"audit", "billing"} {
		t.group(g)
	}
	a, b := t.subscribe(driver.SubscribeOptions{Group: "audit"}), t.subscribe(driver.SubscribeOptions{Group: "billing"})
	t.putKeyed("k", "1", "2", "3")
	b.ack(b.expect("1")...)
	d := b.expect("2")[0]
	b.bury(d)
	b.ack(b.expect("3")...)
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, Group: "audit", ID: d.ID}})[0], "Delete for one group")
	to := driver.Move{Target: driver.Target{Topic: topic, Group: "billing", ID: d.ID}, To: "audit",
		Edit: &driver.Message{Topic: topic, Key: "j", Body: []byte("2 again")}}
	if err := t.Move(t.ctx(), []driver.Move{to})[0]; err != nil {
		t.wantErr(err, driver.ErrConflict, "Move to where it was deleted a moment ago")
		a.ack(a.expect("1")...)
		last := a.expect("3")
		t.move(to)
		a.ack(append(a.expect("2 again"), last...)...)
	} else {
		ds := a.take(2)
		got := bodies(ds)
		slices.Sort(got)
		t.equal(got, []string{"1", "2 again"}, "what may be handled at once")
		a.idle()
		a.ack(ds...)
		a.ack(a.expect("3")...)
	}
	a.idle()
	t.countsOf("audit", 0, 0, 0, 0)
	t.balanced()
}
