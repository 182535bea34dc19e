package drivertest

import (
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func ensureTopicIsIdempotent(t *T) {
	c := t.onePartition(driver.TopicConfig{MaxMessages: 1234, ExpiredDead: true})
	for range 3 {
		t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic")
	}
	t.put("a")
	t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic of a topic with messages")
	t.equal(t.info(topic).Config, c, "configuration")
}

// info returns what Topics says of the topic.
func (t *T) info(topic string) driver.TopicInfo {
	t.Helper()
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	i := slices.IndexFunc(infos, func(i driver.TopicInfo) bool { return i.Topic == topic })
	if i < 0 {
		t.Fatalf("Topics does not show %q: %+v", topic, infos)
	}
	return infos[i]
}

func ensureTopicShowsTheDifference(t *T) {
	c := t.onePartition(driver.TopicConfig{MaxMessages: 1234})
	t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic")
	d := c
	d.MaxMessages = 5678
	err := t.EnsureTopic(t.ctx(), topic, d)
	t.wantErr(err, driver.ErrConflict, "EnsureTopic with another configuration")
	if !strings.Contains(err.Error(), "1234") || !strings.Contains(err.Error(), "5678") {
		t.Errorf("the error does not show the difference between 1234 and 5678: %v", err)
	}
	t.equal(t.info(topic).Config, c, "configuration after the conflict")
}

// publishedTopicTakesConfiguration: a topic that exists only because something was published has none yet.
func publishedTopicTakesConfiguration(t *T) {
	t.put("a")
	c := driver.TopicConfig{MaxMessages: 2}
	t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic of a topic that was only published to")
	t.equal(t.info(topic).Config.MaxMessages, int64(2), "bound")
	c.MaxMessages = 3
	t.wantErr(t.EnsureTopic(t.ctx(), topic, c), driver.ErrConflict, "EnsureTopic with another configuration")
}

func alterTopic(t *T) {
	s := t.bounded(driver.TopicConfig{MaxMessages: 1})
	t.put("a")
	t.full("b")
	c := t.onePartition(driver.TopicConfig{MaxMessages: 2})
	t.ok(t.AlterTopic(t.ctx(), topic, c), "AlterTopic")
	t.equal(t.info(topic).Config, c, "configuration")
	t.put("b")
	t.full("c")
	t.ok(t.EnsureTopic(t.ctx(), topic, c), "EnsureTopic with the altered configuration")
	s.expect("a", "b")
}

func deleteTopic(t *T) {
	s := t.consumer()
	t.put("a", "b", "c")
	t.publish(t.msg("d", delay(time.Hour)))
	s.bury(s.one())
	t.wantErr(t.DeleteTopic(t.ctx(), topic), driver.ErrConflict, "DeleteTopic with a consumer")
	s.expect("b")
	s.leave()
	t.ok(t.DeleteTopic(t.ctx(), topic), "DeleteTopic")
	_, err := t.Stats(t.ctx(), topic)
	t.wantErr(err, driver.ErrNotFound, "Stats of a deleted topic")
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	t.equal(len(infos), 0, "topics left")
	s = t.subscribe(driver.SubscribeOptions{})
	s.idle()
	t.put("new")
	s.expect("new")
}

// idsAreNewAfterADelete: a topic takes the memory of what was published to it along.
func idsAreNewAfterADelete(t *T) {
	t.oneLane(topic)
	ms := []*driver.Message{t.msg("a", ownID("order 7")), t.msg("b", dedup("order 8", time.Hour)),
		t.msg("c", ownID("order 9"), delay(time.Hour))}
	t.publish(ms...)
	t.ok(t.AlterTopic(t.ctx(), topic, t.onePartition(driver.TopicConfig{ExpiredDead: true})), "AlterTopic")
	t.duplicate(t.publish(ms[0])[0], ms[0].ID) // it is the same topic
	t.ok(t.DeleteTopic(t.ctx(), topic), "DeleteTopic")
	ms[2].Delay = 0
	s := t.consumer()
	for _, r := range t.publish(ms...) {
		if r.Duplicate {
			t.Fatalf("receipt %+v of what was published to a deleted topic", r)
		}
	}
	s.ack(s.expect("a", "b", "c")...)
	s.idle()
}

func deleteGroup(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a")
	s := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	t.wantErr(t.DeleteGroup(t.ctx(), topic, "audit"), driver.ErrConflict, "DeleteGroup with a consumer")
	s.leave()
	t.ok(t.DeleteGroup(t.ctx(), topic, "audit"), "DeleteGroup")
	t.equal(t.groupsOf(topic), []string{"billing"}, "groups left")
	b := t.subscribe(driver.SubscribeOptions{Group: "billing"})
	b.ack(b.expect("a")...)
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && st.Messages != 0 {
		t.Errorf("Messages is %d: what the deleted group had not settled is still counted", st.Messages)
	}
	t.subscribe(driver.SubscribeOptions{Group: "audit"}).idle() // a new group, without the old messages
}

func ensureGroup(t *T) {
	t.oneLane(topic)
	for range 2 {
		t.ok(t.EnsureGroup(t.ctx(), topic, "audit", driver.GroupOptions{Order: driver.Relaxed}), "EnsureGroup")
	}
	t.wantErr(t.EnsureGroup(t.ctx(), topic, "audit", driver.GroupOptions{Order: driver.Strict}), driver.ErrConflict,
		"EnsureGroup with another order")
	t.equal(t.groupStats("audit").Order, driver.Relaxed, "order")
	t.put("a")
	t.subscribe(driver.SubscribeOptions{Group: "audit", Order: driver.Relaxed}).expect("a")
}

func unknownNamesAreNotFound(t *T) {
	t.put("a")
	_, err := t.Stats(t.ctx(), "nowhere")
	t.wantErr(err, driver.ErrNotFound, "Stats")
	_, err = t.Get(t.ctx(), driver.Target{Topic: topic, ID: "nobody"})
	t.wantErr(err, driver.ErrNotFound, "Get of an unknown id")
	_, err = t.Get(t.ctx(), driver.Target{Topic: "nowhere", ID: "nobody"})
	t.wantErr(err, driver.ErrNotFound, "Get in an unknown topic")
	t.wantErr(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: "nobody"}})[0], driver.ErrNotFound,
		"Delete of an unknown id")
	t.wantErr(t.Move(t.ctx(), []driver.Move{{Target: driver.Target{Topic: topic, ID: "nobody"}}})[0], driver.ErrNotFound,
		"Move of an unknown id")
	t.wantErr(t.DeleteTopic(t.ctx(), "nowhere"), driver.ErrNotFound, "DeleteTopic")
	t.wantErr(t.DeleteGroup(t.ctx(), topic, "nobody"), driver.ErrNotFound, "DeleteGroup")
	t.wantErr(t.AlterTopic(t.ctx(), "nowhere", driver.TopicConfig{}), driver.ErrNotFound, "AlterTopic")
	t.wantErr(t.Pause(t.ctx(), "nowhere", "", true), driver.ErrNotFound, "Pause of an unknown topic")
	t.wantErr(t.Pause(t.ctx(), topic, "nobody", true), driver.ErrNotFound, "Pause of an unknown group")
	_, err = t.Purge(t.ctx(), "nowhere", "")
	t.wantErr(err, driver.ErrNotFound, "Purge of an unknown topic")
	_, err = t.Purge(t.ctx(), topic, "nobody")
	t.wantErr(err, driver.ErrNotFound, "Purge of an unknown group")
}
