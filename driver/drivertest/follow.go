package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// follower returns what a driver can do that numbers messages; of others the case says nothing.
func (t *T) follower() driver.Follower {
	t.Helper()
	f, ok := unwrapped(t.Driver).(driver.Follower)
	if !ok {
		t.Skip("the driver does not number messages")
	}
	return f
}

func (t *T) follow(f driver.Follower, q driver.FollowQuery) driver.FollowPage {
	t.Helper()
	q.Topic = topic
	page, err := f.Follow(t.ctx(), q)
	t.ok(err, "Follow")
	return page
}

func bodiesOf(entries []driver.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, string(e.Body))
	}
	return all
}

// followOn: a first page tells where the topic ends, and each page has what came after the one before, whatever became
// of it, as long as some group has not settled it.
func followOn(t *T) {
	f := t.follower()
	t.configure(topic, driver.TopicConfig{})
	t.group(driver.DefaultGroup)
	t.putKeyed("k", "before")
	end := t.follow(f, driver.FollowQuery{})
	t.equal(end.Entries, []driver.Entry{}, "entries of the first page")
	t.equal(end.Published, uint64(1), "published before")

	rs := t.putKeyed("k", "a")
	t.publish(t.msg("later", key("k"), delay(time.Hour)))
	next := t.follow(f, driver.FollowQuery{After: end.Last})
	t.equal(bodiesOf(next.Entries), []string{"a", "later"}, "what was published since")
	t.equal(next.Published-end.Published, uint64(2), "how much was published since")
	a, later := next.Entries[0], next.Entries[1]
	t.equal(a.Ref, rs[0].Ref, "the ref of an entry")
	t.equal([]string{a.ID, a.Key, a.Group, string(a.State)}, []string{rs[0].ID, "k", "", ""},
		"a message as the topic has it")
	t.equal(a.PublishedAt.IsZero(), false, "it has no time")
	t.equal(later.State, driver.StateDelayed, "the state of what is delayed")

	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("k", "b", "c")
	for range 3 { // before, a, b
		s.ack(s.take(1)...)
	}
	last := t.follow(f, driver.FollowQuery{After: next.Last})
	t.equal(bodiesOf(last.Entries), []string{"c"}, "what is still there")
	t.equal(last.Published-next.Published, uint64(2), "how much was published, settled or not")
	t.equal(t.follow(f, driver.FollowQuery{After: last.Last}).Entries, []driver.Entry{}, "entries when nothing came")
}

// followNewest: of more than the limit the newest are returned, and a topic that was made again begins anew.
func followNewest(t *T) {
	f := t.follower()
	t.configure(topic, driver.TopicConfig{})
	end := t.follow(f, driver.FollowQuery{})
	t.putKeyed("k", "a", "b", "c", "d", "e")
	page := t.follow(f, driver.FollowQuery{After: end.Last, Limit: 2})
	t.equal(bodiesOf(page.Entries), []string{"d", "e"}, "the newest")
	t.equal(page.Published-end.Published, uint64(5), "how much was published")
	t.ok(t.DeleteTopic(t.ctx(), topic), "DeleteTopic")
	_, err := f.Follow(t.ctx(), driver.FollowQuery{Topic: topic, After: page.Last})
	t.wantErr(err, driver.ErrNotFound, "Follow of a topic that is gone")
	t.configure(topic, driver.TopicConfig{})
	t.putKeyed("k", "f")
	t.equal(bodiesOf(t.follow(f, driver.FollowQuery{After: page.Last}).Entries), []string{"f"}, "what the new topic has")
}

// badFollowQueries are refused.
func badFollowQueries(t *T) {
	f := t.follower()
	for _, name := range badTopicNames {
		_, err := f.Follow(t.ctx(), driver.FollowQuery{Topic: name})
		t.refuses(err, driver.ErrInvalid, "Follow with a bad name")
	}
	t.put("a")
	_, err := f.Follow(t.ctx(), driver.FollowQuery{Topic: topic, Limit: -1})
	t.refuses(err, driver.ErrInvalid, "Follow with a negative limit")
}
