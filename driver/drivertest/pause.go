package drivertest

import "github.com/ferrymq/ferry/driver"

func (t *T) pause(group string, paused bool) {
	t.Helper()
	t.ok(t.Pause(t.ctx(), topic, group, paused), "Pause")
}

func pauseTopic(t *T) {
	s := t.consumer()
	t.pause("", true)
	t.put("a")
	s.idle()
	if !t.stats(topic).Paused {
		t.Error("Stats does not say that the topic is paused")
	}
	waiting := s.inBackground()
	t.pause("", false)
	t.ok(<-waiting, "Receive that waited while the pause was lifted")
	if t.stats(topic).Paused {
		t.Error("Stats says that the topic is still paused")
	}
}

func pauseGroup(t *T) {
	t.group("audit")
	t.group("billing")
	a, b := t.subscribe(driver.SubscribeOptions{Group: "audit"}), t.subscribe(driver.SubscribeOptions{Group: "billing"})
	t.pause("audit", true)
	t.put("a")
	b.expect("a")
	a.idle()
	if !t.groupStats("audit").Paused || t.groupStats("billing").Paused || t.stats(topic).Paused {
		t.Error("Stats does not say that group audit, and nothing else, is paused")
	}
	t.pause("audit", false)
	a.expect("a")
}

func pauseTopicAndGroup(t *T) {
	s := t.consumer()
	t.pause("", true)
	t.pause(driver.DefaultGroup, true)
	t.put("a")
	t.pause("", false)
	s.idle()
	t.pause(driver.DefaultGroup, false)
	s.expect("a")
}

func settleWhilePaused(t *T) {
	s := t.shortLease()
	t.put(numbered("a", 5)...)
	ds := s.take(5)
	t.pause("", true)
	s.extend(ds...)
	for i, o := range outcomes {
		s.settle(driver.Settlement{Delivery: ds[i], Outcome: o, Failure: failure("x")})
	}
	t.put("b")
	s.idle()
	t.counts(3, 0, 0, 1) // retried, released, and the new one
	t.pause("", false)
	s.take(3)
}

func dueWhilePaused(t *T) {
	s := t.consumer()
	t.pause("", true)
	t.publish(t.msg("a", delay(unit)))
	s.idleFor(2 * unit)
	t.pause("", false)
	s.expect("a")
}

func pauseIsShownByTopics(t *T) {
	t.consumer()
	t.pause("", true)
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	if len(infos) != 1 || !infos[0].Paused {
		t.Errorf("Topics shows %+v, want one paused topic", infos)
	}
}
