package drivertest

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// neverEarly publishes many messages with random delays while the consumer waits.
func neverEarly(t *T) {
	n, r, s := 100, t.random(0), t.consumer()
	if t.Virtual {
		n = 2000
	}
	due := map[string]time.Time{}
	for i := range n {
		d := time.Duration(r.Int64N(int64(3 * unit)))
		m := t.msg(fmt.Sprint(i), delay(d))
		due[m.ID] = time.Now().Add(d)
		t.publish(m)
	}
	for range n {
		d := s.one()
		if _, known := due[d.ID]; !known {
			t.Fatalf("%s was delivered twice, or never published", d.ID)
		}
		t.onTime(due[d.ID], "message delayed by "+d.Delay.String())
		delete(due, d.ID)
		s.ack(d)
	}
}

func delayedIsNotReady(t *T) {
	t.oneLane(topic)
	t.publish(t.msg("a", delay(time.Hour)))
	s := t.stats(topic)
	if t.Caps.Counts == driver.CountsExact && (s.Published != 1 || s.Delayed != 1 || s.Fanned != 0 || s.Messages != 1) {
		t.Errorf("Stats %+v, want one message, delayed", s)
	}
	t.counts(0, 0, 0, 0)
	t.subscribe(driver.SubscribeOptions{}).idle()
}

func nearerOvertakesFarther(t *T) {
	s := t.consumer()
	t.publish(t.msg("far", delay(time.Hour)))
	s.idle() // by now a scheduler sleeps for the far one
	start := time.Now()
	t.publish(t.msg("near", delay(unit)))
	s.expect("near")
	t.onTime(start.Add(unit), "the nearer message")
}

func dueAtATime(t *T) {
	s := t.consumer()
	at := time.Now().Add(2 * unit)
	t.before(at, func() {
		t.publish(t.msg("a", func(m *driver.Message) { m.At = at }))
		s.idle()
	})
	s.expect("a")
	if early := time.Until(at); early > t.clockSlack() {
		t.Errorf("scheduled message came %v early", early)
	}
}

func dueInThePastIsNow(t *T) {
	s := t.consumer()
	t.publish(t.msg("at", func(m *driver.Message) { m.At = time.Now().Add(-time.Hour) }),
		t.msg("epoch", func(m *driver.Message) { m.At = time.Unix(1, 0) }), t.msg("delay", delay(-time.Hour)))
	start := time.Now()
	s.expect("at", "epoch", "delay")
	t.onTime(start, "messages due in the past")
}

func delayOfYears(t *T) {
	s := t.consumer()
	const years = 60 * 365 * 24 * time.Hour
	m := t.msg("a", delay(years))
	before := time.Now()
	t.publish(m)
	s.idle()
	e := t.get(driver.Target{Topic: topic, ID: m.ID})
	t.equal(e.State, driver.StateDelayed, "state")
	t.equal(e.Group, "", "group of a delayed message")
	if off := e.DueAt.Sub(before.Add(years)).Abs(); off > time.Minute {
		t.Errorf("DueAt is %v, %v off", e.DueAt, off)
	}
}

// farthestDelays: what is due in centuries waits like anything else, and a time is not moved. Longer durations may be
// cut to what the backend can say.
func farthestDelays(t *T) {
	s := t.consumer()
	at := time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC)
	far := []*driver.Message{
		t.msg("at", func(m *driver.Message) { m.At = at }),
		t.msg("longest", delay(driver.Hold-1)),
	}
	t.publish(append(far, t.msg("soon", delay(unit)))...)
	s.ack(s.expect("soon")...)
	s.idle()
	t.counts(0, 0, 0, 0)
	for _, m := range far {
		e := t.get(driver.Target{Topic: topic, ID: m.ID})
		t.equal(e.State, driver.StateDelayed, "state of "+string(m.Body))
		if early := at.Sub(e.DueAt); early > time.Millisecond || m == far[0] && early < -time.Second {
			t.Errorf("%q is due at %v, and not at %v", m.Body, e.DueAt, at)
		}
	}
	page, err := t.Browse(t.ctx(), driver.Query{Topic: topic, State: driver.StateDelayed, Limit: 10})
	t.ok(err, "Browse")
	if len(page.Entries) != len(far) {
		t.Errorf("Browse shows %d delayed messages, want %d", len(page.Entries), len(far))
	}
}

func delayKeepsPriority(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("whether it is due cannot be seen in estimates")
	}
	s := t.consumerWith(driver.SubscribeOptions{StrictPriority: true})
	t.pause("", true)
	t.publish(t.msg("low", prio(driver.Low)), t.msg("normal"), t.msg("urgent", prio(driver.Urgent), delay(unit)))
	t.until("the delayed message is ready", func() bool { return t.groupStats(driver.DefaultGroup).Ready == 3 })
	t.pause("", false)
	ds := s.expect("urgent", "normal", "low")
	t.equal(ds[0].Priority, driver.Urgent, "priority")
}

// delayedJoinsTheTail: a delayed message does not block its key before it is due, and is last of the key then.
func delayedJoinsTheTail(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("whether it is due cannot be seen in estimates")
	}
	s := t.consumer()
	t.publish(t.msg("later", key("k"), delay(unit)), t.msg("now1", key("k")), t.msg("now2", key("k")))
	s.ack(s.expect("now1")...)
	t.until("the delayed message is ready", func() bool { return t.stats(topic).Delayed == 0 })
	t.putKeyed("k", "last")
	t.equal(bodies(s.gather(3)), []string{"now2", "later", "last"}, "order of the key")
}

func holdThenCommit(t *T) {
	s := t.consumer()
	m := t.msg("half", delay(driver.Hold))
	t.publish(m)
	s.idleFor(2 * unit)
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && (st.Held != 1 || st.Delayed != 0) {
		t.Errorf("Stats %+v, want one message held", st)
	}
	t.equal(t.get(driver.Target{Topic: topic, ID: m.ID}).State, driver.StateHeld, "state")
	t.move(driver.Move{Target: driver.Target{Topic: topic, ID: m.ID}})
	s.ack(s.expect("half")...)
	t.equal(t.stats(topic).Held, int64(0), "held messages")
}

func holdThenRollBack(t *T) {
	s := t.consumer()
	m := t.msg("half", delay(driver.Hold))
	t.publish(m)
	t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: m.ID}})[0], "Delete")
	s.idle()
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact &&
		(st.Held != 0 || st.Cancelled != 1 || st.Messages != 0) {
		t.Errorf("Stats %+v, want nothing held, one cancelled", st)
	}
}
