package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// duplicate demands that r says "known already" and names the first message.
func (t *T) duplicate(r driver.Receipt, firstID string) {
	t.Helper()
	if !r.Duplicate || r.ID != firstID || r.Err != nil {
		t.Fatalf("receipt %+v, want a duplicate of %q", r, firstID)
	}
}

func dedupInsideTheWindow(t *T) {
	s := t.consumer()
	first := t.publish(t.msg("a", dedup("order 7", time.Hour)))[0]
	for range 3 {
		t.duplicate(t.publish(t.msg("b", dedup("order 7", time.Hour)))[0], first.ID)
	}
	s.ack(s.expect("a")...)
	t.duplicate(t.publish(t.msg("c", dedup("order 7", time.Hour)))[0], first.ID)
	s.idle()
	if n := t.stats(topic).Published; t.Caps.Counts == driver.CountsExact && n != 1 {
		t.Errorf("Published is %d: duplicates must not be counted", n)
	}
}

func dedupAfterTheWindow(t *T) {
	if t.Caps.Dedup == driver.DedupPerSession {
		t.Skip("a producer session knows no window")
	}
	s := t.consumer()
	start := time.Now()
	first := t.publish(t.msg("a", dedup("order 7", unit)))[0]
	s.ack(s.expect("a")...)
	var r driver.Receipt
	t.until("the window ends", func() bool {
		r = t.publish(t.msg("b", dedup("order 7", unit)))[0]
		return !r.Duplicate
	})
	if early := unit - time.Since(start); early > t.clockSlack() {
		t.Errorf("the window ended %v early", early)
	}
	if r.ID == first.ID {
		t.Errorf("the new message has the id of the old one")
	}
	s.expect("b")
}

func dedupInOneBatch(t *T) {
	s := t.consumer()
	rs := t.publish(t.msg("a", dedup("1", time.Hour)), t.msg("b", dedup("2", time.Hour)),
		t.msg("again", dedup("1", time.Hour)), t.msg("free"))
	t.duplicate(rs[2], rs[0].ID)
	s.expect("a", "b", "free")
	s.idle()
}

func dedupPerTopic(t *T) {
	t.publish(t.msg("a", dedup("1", time.Hour)))
	if r := t.publish(t.msg("b", dedup("1", time.Hour), to(other)))[0]; r.Duplicate {
		t.Errorf("a dedup id of one topic was known in another: %+v", r)
	}
	t.subscribe(driver.SubscribeOptions{Topic: other}).expect("b")
}

func dedupOfADelayed(t *T) {
	s := t.consumer()
	first := t.publish(t.msg("a", delay(unit), dedup("1", time.Hour)))[0]
	t.duplicate(t.publish(t.msg("b", dedup("1", time.Hour)))[0], first.ID)
	s.expect("a")
	s.idle()
}

func dedupNotOfARefused(t *T) {
	if t.Caps.Bound == driver.BoundEstimated {
		t.Skip("the bound is an estimate")
	}
	t.configure(topic, driver.TopicConfig{MaxMessages: 1})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("fills it")
	_, err := t.Publish(t.ctx(), t.msgs([]string{"a"}, dedup("1", time.Hour)), driver.PublishOptions{})
	t.wantErr(err, driver.ErrFull, "Publish into a full topic")
	s.ack(s.expect("fills it")...)
	if r := t.publish(t.msg("a", dedup("1", time.Hour)))[0]; r.Duplicate {
		t.Errorf("the dedup id of a refused publish was remembered: %+v", r)
	}
	s.expect("a")
}

func ownIDIsPublishedOnce(t *T) {
	if t.Caps.IDWindow == 0 {
		t.Skip("ids are not remembered")
	}
	s := t.consumer()
	t.publish(t.msg("a", ownID("order-7")))
	t.duplicate(t.publish(t.msg("b", ownID("order-7")))[0], "order-7")
	d := s.expect("a")[0]
	t.duplicate(t.publish(t.msg("c", ownID("order-7")))[0], "order-7")
	s.ack(d)
	t.duplicate(t.publish(t.msg("d", ownID("order-7")))[0], "order-7") // a producer's retry after the ack
	s.idle()
	if r := t.publish(t.msg("e", ownID("order-7"), to(other)))[0]; r.Duplicate {
		t.Errorf("an id of one topic was known in another: %+v", r)
	}
}
