package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// restart closes the driver and opens its backend again.
func (t *T) restart() {
	t.Helper()
	t.Driver = t.Reopen(t.TB, t.Driver)
	t.equal(t.Capabilities(), t.Caps, "capabilities after a restart")
}

// survives skips a case where nothing survives a restart.
func (t *T) survives() {
	t.Helper()
	if t.Reopen == nil {
		t.Skip("nothing survives a restart")
	}
}

func restartKeepsEveryState(t *T) {
	t.survives()
	s := t.consumer()
	t.put("dead", "waiting")
	ds := s.expect("dead", "waiting")
	s.retry(ds[0], 0)
	s.bury(s.expect("dead")[0])
	s.retry(ds[1], time.Hour)
	ms := []*driver.Message{t.msg("ready", key("k"), prio(driver.High)), t.msg("delayed", delay(time.Hour)),
		t.msg("held", delay(driver.Hold))}
	ms[0].Headers = map[string]string{"trace": "1"}
	t.publish(ms...)
	before := t.deadLetter()
	t.restart()
	t.equal(t.deadLetter(), before, "dead letter after a restart")
	for _, state := range []driver.State{driver.StateReady, driver.StateWaiting, driver.StateDead, driver.StateDelayed,
		driver.StateHeld} {
		t.equal(entryBodies(t.browse(state)), []string{string(state)}, "entries in state "+string(state)+" after a restart")
	}
	t.equal(len(t.browse(driver.StateWaiting)[0].History), 1, "history after a restart")
	t.counts(1, 0, 1, 1)
	s = t.subscribe(driver.SubscribeOptions{})
	t.whole(s.one().Message, ms[0])
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[1].ID}})
	t.equal(s.expect("waiting")[0].Attempt, 2, "attempt after a restart")
}

func restartReturnsWhatIsHeld(t *T) {
	t.survives()
	s := t.consumer()
	t.put(numbered("a", 4)...)
	old := s.expect("a1", "a2")
	t.restart()
	s = t.subscribe(driver.SubscribeOptions{})
	ds := s.expect("a1", "a2", "a3", "a4")
	t.uncounted(ds[0])
	t.uncounted(ds[1])
	s.refused(driver.Settlement{Delivery: old[0], Outcome: driver.Ack})
	s.ack(ds...)
}

func restartKeepsDelays(t *T) {
	t.survives()
	t.oneLane(topic)
	start := time.Now()
	t.publish(t.msg("soon", delay(unit)), t.msg("later", delay(4*unit)))
	t.restart()
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("soon")
	s.expect("later")
	t.onTime(start.Add(4*unit), "a message delayed over a restart")
}

func restartKeepsKeyOrder(t *T) {
	t.survives()
	s := t.consumer()
	t.putKeyed("k", "a1", "a2", "a3")
	d := s.expect("a1")[0]
	t.before(time.Now().Add(5*unit), func() { // a restart may take some of it
		s.retry(d, 5*unit)
		t.restart()
		s = t.subscribe(driver.SubscribeOptions{})
		t.putKeyed("k", "a4")
		s.idle() // its head still waits
	})
	t.equal(bodies(s.gather(4)), numbered("a", 4), "order of the key after a restart")
}

func restartKeepsTopics(t *T) {
	t.survives()
	c := t.onePartition(driver.TopicConfig{MaxMessages: 1234, ExpiredDead: true})
	t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic")
	t.ok(t.EnsureGroup(t.ctx(), topic, "audit", driver.GroupOptions{Order: driver.Relaxed}), "EnsureGroup")
	t.ok(t.EnsureGroup(t.ctx(), topic, "billing", driver.GroupOptions{}), "EnsureGroup")
	t.pause("", true)
	t.pause("audit", true)
	t.restart()
	t.equal(t.info(topic), driver.TopicInfo{Topic: topic, Config: c, Paused: true, Groups: []string{"audit", "billing"}},
		"topic after a restart")
	if g := t.groupStats("audit"); g.Order != driver.Relaxed || !g.Paused || g.Consumers != 0 {
		t.Errorf("group audit after a restart is %+v, want it relaxed, paused, without consumers", g)
	}
	t.pause("", false)
	t.put("a")
	t.subscribe(driver.SubscribeOptions{Group: "audit", Order: driver.Relaxed}).idle()
	t.subscribe(driver.SubscribeOptions{Group: "billing"}).expect("a")
}

func restartKeepsKnownIDs(t *T) {
	t.survives()
	t.oneLane(topic)
	first := t.publish(t.msg("a", dedup("order 7", time.Hour)), t.msg("b", ownID("order-8")))
	s := t.subscribe(driver.SubscribeOptions{})
	s.ack(s.take(2)...)
	t.restart()
	if t.Caps.Dedup != driver.DedupPerSession {
		t.duplicate(t.publish(t.msg("c", dedup("order 7", time.Hour)))[0], first[0].ID)
	}
	if t.Caps.IDWindow > 0 && t.Caps.Dedup != driver.DedupPerSession { // a session ends with its process
		t.duplicate(t.publish(t.msg("d", ownID("order-8")))[0], "order-8")
	}
}

func restartKeepsCounts(t *T) {
	t.survives()
	s := t.consumer()
	t.put(numbered("a", 6)...)
	for i, d := range s.take(5) {
		s.settle(driver.Settlement{Delivery: d, Outcome: outcomes[i], After: time.Hour, Failure: failure("x")})
	}
	before := t.stats(topic)
	t.restart()
	after := t.stats(topic)
	before.Groups[0].Consumers, before.Groups[0].Oldest, after.Groups[0].Oldest = 0, 0, 0
	if t.Caps.Counts == driver.CountsExact {
		t.equal(after, before, "Stats after a restart")
	}
}
