package drivertest

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// hinted demands an error of Ferry's own kind that says what to do next.
func (t *T) hinted(err error) {
	t.Helper()
	var e *driver.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is not a *driver.Error", err)
	}
	if e.Hint == "" || e.Text == "" || e.Kind == nil {
		t.Fatalf("error %#v lacks its kind, its text or its hint", e)
	}
}

// errorsCarryHints provokes errors of every kind a driver gives.
func errorsCarryHints(t *T) {
	s := t.consumer()
	t.put("a")
	_, err := t.Stats(t.ctx(), "nowhere")
	t.hinted(err)
	_, err = t.Get(t.ctx(), driver.Target{Topic: topic, ID: "nobody"})
	t.hinted(err)
	t.hinted(t.DeleteTopic(t.ctx(), topic))
	t.hinted(t.DeleteGroup(t.ctx(), topic, driver.DefaultGroup))
	d := s.one()
	t.hinted(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: d.ID}})[0])
	t.hinted(t.Move(t.ctx(), []driver.Move{{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup,
		ID: d.ID}}})[0])
	s.ack(d)
	t.hinted(s.errs(driver.Settlement{Delivery: d, Outcome: driver.Ack})[0])
	if t.Caps.Bound != driver.BoundEstimated {
		t.configure(other, driver.TopicConfig{MaxMessages: 1})
		t.publish(t.msg("a", to(other)))
		_, err = t.Publish(t.ctx(), t.msgs([]string{"b"}, to(other)), driver.PublishOptions{})
		t.hinted(err)
		t.hinted(t.EnsureTopic(t.ctx(), other, t.onePartition(driver.TopicConfig{MaxMessages: 2})))
	}
	t.ok(t.Close(t.ctx()), "Close")
	_, err = t.Topics(t.ctx())
	t.hinted(err)
}

// defaultsAreApplied: a subscription with nothing set but what is required works.
func defaultsAreApplied(t *T) {
	s, err := t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "tester"})
	t.ok(err, "Subscribe")
	before := time.Now()
	t.put("a")
	d := (&sub{Subscription: s, t: t}).one()
	t.equal(d.Group, driver.DefaultGroup, "group")
	if until := d.LeaseUntil.Sub(before); until < t.Caps.DefaultLease/2 || until > t.Caps.DefaultLease+t.Late {
		t.Errorf("LeaseUntil is %v away, for a default lease of %v", until, t.Caps.DefaultLease)
	}
}
