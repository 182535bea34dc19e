package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

func emitWithTheAck(t *T) {
	s := t.consumer()
	o := t.subscribe(driver.SubscribeOptions{Topic: other})
	t.put("a")
	same, else1, else2 := t.msg("same"), t.msg("else1", to(other), key("k")), t.msg("else2", to(other), key("k"))
	else1.Headers = map[string]string{"trace": "1"}
	s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Ack, Emit: []*driver.Message{same, else1, else2}})
	d := s.expect("same")[0]
	t.counted(d, 1, 1, driver.CauseFirst)
	got := o.gather(2)
	t.whole(got[0].Message, else1)
	t.whole(got[1].Message, else2)
}

// emitWithEachOutcome: follow-ups come with any outcome, not only with an ack.
func emitWithEachOutcome(t *T) {
	s := t.consumer()
	t.put(numbered("a", len(outcomes))...)
	for i, d := range s.take(len(outcomes)) {
		s.settle(driver.Settlement{Delivery: d, Outcome: outcomes[i], After: 1 << 40, Failure: failure("x"),
			Emit: []*driver.Message{t.msg(outcomes[i].String(), to(other))}})
	}
	got := bodies(t.subscribe(driver.SubscribeOptions{Topic: other}).take(len(outcomes)))
	t.equal(sorted(got), []string{"ack", "dead", "drop", "release", "retry"}, "follow-ups")
}

func emitDelayed(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	t.before(time.Now().Add(3*unit), func() { // a transaction takes some of it
		s.settle(driver.Settlement{Delivery: d, Outcome: driver.Ack, Emit: t.msgs([]string{"later"}, delay(3*unit))})
		s.idle()
	})
	s.expect("later")
}

func emitRetainsNothing(t *T) {
	s := t.consumer()
	t.put("a")
	m := t.msg("follow-up")
	s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Ack, Emit: []*driver.Message{m}})
	m.Body[0] = 'X'
	s.expect("follow-up")
}

func emitOfAKnownID(t *T) {
	if t.Caps.IDWindow == 0 {
		t.Skip("ids are not remembered")
	}
	s := t.consumer()
	t.put("a", "b")
	for _, d := range s.take(2) {
		id := driver.EmitID("parent", 0)
		s.settle(driver.Settlement{Delivery: d, Outcome: driver.Ack,
			Emit: []*driver.Message{t.msg(string(d.Body), ownID(id), to(other))}})
	}
	o := t.subscribe(driver.SubscribeOptions{Topic: other})
	o.ack(o.expect("a")...)
	o.idle()
}
