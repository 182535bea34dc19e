package drivertest

import (
	"errors"

	"github.com/ferrymq/ferry/driver"
)

var atomically = driver.PublishOptions{Atomic: true}

func atomicPublish(t *T) {
	t.oneLane(topic)
	rs, err := t.Publish(t.ctx(), t.msgs(numbered("a", 3), key("k")), atomically)
	if t.Caps.AtomicPublish == driver.AtomicNever {
		t.wantErr(err, driver.ErrUnsupported, "atomic Publish")
		t.hinted(err)
		return
	}
	t.ok(err, "atomic Publish")
	t.equal(len(rs), 3, "receipts")
	t.equal(bodies(t.subscribe(driver.SubscribeOptions{}).gather(3)), numbered("a", 3), "deliveries")
}

func atomicPublishAllOrNothing(t *T) {
	if t.Caps.AtomicPublish == driver.AtomicNever || t.Caps.Bound == driver.BoundEstimated {
		t.Skip("no atomic publish, or no exact bound to break it with")
	}
	s := t.bounded(driver.TopicConfig{MaxMessages: 2})
	rs, err := t.Publish(t.ctx(), t.msgs(numbered("a", 3), key("k")), atomically)
	t.wantErr(err, driver.ErrFull, "atomic Publish of more than fits")
	for i, r := range rs {
		if r.Err == nil {
			t.Errorf("receipt %d of a refused atomic publish has no error", i)
		}
	}
	s.idle()
	if st := t.stats(topic); st.Published != 0 || st.Messages != 0 {
		t.Errorf("Stats %+v after a refused atomic publish", st)
	}
	_, err = t.Publish(t.ctx(), t.msgs(numbered("b", 2), key("k")), atomically)
	t.ok(err, "atomic Publish of what fits")
}

func atomicPublishOverTopics(t *T) {
	t.oneLane(topic)
	t.oneLane(other)
	_, err := t.Publish(t.ctx(), []*driver.Message{t.msg("a"), t.msg("b", to(other))}, atomically)
	if all := t.Caps.AtomicPublish == driver.AtomicEverywhere || t.Caps.AtomicPublish == driver.AtomicTransaction; all {
		t.ok(err, "atomic Publish to two topics")
		return
	}
	t.wantErr(err, driver.ErrUnsupported, "atomic Publish to two topics")
	t.hinted(err)
	for _, name := range []string{topic, other} {
		if n := t.stats(name).Published; n != 0 {
			t.Errorf("%d messages of a refused atomic publish are in %q", n, name)
		}
	}
}

func levelsAreRefusedNotLowered(t *T) {
	t.oneLane(topic)
	accepted := uint64(0)
	for _, level := range []driver.Durability{driver.InMemory, driver.Written, driver.Synced, driver.Replicated(1),
		driver.Replicated(9)} {
		rs, err := t.Publish(t.ctx(), t.msgs([]string{level.String()}), driver.PublishOptions{Level: level})
		if t.Caps.Gives(level) {
			t.ok(err, "Publish at level "+level.String())
			accepted++
			continue
		}
		t.wantErr(err, driver.ErrUnsupported, "Publish at level "+level.String())
		t.hinted(err)
		if len(rs) != 1 || !errors.Is(rs[0].Err, driver.ErrUnsupported) {
			t.Errorf("receipts %+v, want one that says ErrUnsupported", rs)
		}
	}
	if n := t.stats(topic).Published; t.Caps.Counts == driver.CountsExact && n != accepted {
		t.Errorf("%d messages stored, but only %d levels were given", n, accepted)
	}
}
