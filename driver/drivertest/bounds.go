package drivertest

import (
	"errors"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// full demands that one more message is refused, and that nothing of it is stored.
func (t *T) full(body string) {
	t.Helper()
	rs, err := t.Publish(t.ctx(), t.msgs([]string{body}), driver.PublishOptions{})
	t.wantErr(err, driver.ErrFull, "Publish into a full topic")
	t.wantErr(rs[0].Err, driver.ErrFull, "receipt of a full topic")
}

// bounded joins a topic with a bound, or skips where the bound is soft.
func (t *T) bounded(c driver.TopicConfig) *sub {
	t.Helper()
	if t.Caps.Bound == driver.BoundEstimated {
		t.Skip("the bound is an estimate")
	}
	t.configure(topic, c)
	return t.subscribe(driver.SubscribeOptions{})
}

func boundOfMessages(t *T) {
	s := t.bounded(driver.TopicConfig{MaxMessages: 3})
	t.put("a1", "a2")
	t.publish(t.msg("delayed", delay(driver.Hold))) // what is delayed counts too
	t.full("a4")
	t.equal(t.stats(topic).Messages, int64(3), "messages")
	ds := s.expect("a1", "a2")
	t.full("a4") // what is in flight counts too
	s.ack(ds[0])
	t.put("a4") // and what is settled does not
	t.full("a5")
	s.bury(ds[1])
	t.put("a5") // nor what is dead
	t.full("a6")
	s.expect("a4", "a5")
}

func boundOfBytes(t *T) {
	s := t.bounded(driver.TopicConfig{MaxBytes: 10 << 10})
	body := strings.Repeat("x", 4<<10)
	t.put(body, body)
	if n := t.stats(topic).Bytes; n < 8<<10 {
		t.Errorf("Bytes is %d, with bodies of %d", n, 8<<10)
	}
	t.full(body)
	s.ack(s.one())
	t.put(body)
	t.full(body)
	s.ack(s.take(2)...)
	t.equal(t.stats(topic).Bytes, int64(0), "bytes of an empty topic")
}

// boundOfBytesAfterEdits: what is delayed or held counts with the bytes that it was last given.
func boundOfBytesAfterEdits(t *T) {
	s := t.bounded(driver.TopicConfig{MaxBytes: 20 << 10})
	small, large := "x", strings.Repeat("x", 16<<10)
	for _, wait := range []time.Duration{time.Hour, driver.Hold} {
		for _, to := range []string{small, large} {
			for _, after := range []time.Duration{0, time.Hour} {
				m := t.msg(map[string]string{small: large, large: small}[to], delay(wait))
				t.publish(m)
				target := driver.Target{Topic: topic, ID: m.ID}
				t.move(driver.Move{Target: target, After: after, Edit: t.msg(to)})
				if n := t.stats(topic).Bytes; (n >= 16<<10) != (to == large) {
					t.Errorf("Bytes is %d after an edit to a body of %d", n, len(to))
				}
				t.sound(topic)
				if to == large {
					t.full(large)
				}
				if after > 0 {
					t.move(driver.Move{Target: target})
				}
				s.ack(s.expect(to)...)
				t.equal(t.stats(topic).Bytes, int64(0), "bytes of an empty topic")
			}
		}
	}
}

// boundInABatch: each receipt tells the truth about its message.
func boundInABatch(t *T) {
	s := t.bounded(driver.TopicConfig{MaxMessages: 2})
	ms := t.msgs(numbered("a", 4))
	rs, err := t.Publish(t.ctx(), ms, driver.PublishOptions{})
	t.wantErr(err, driver.ErrFull, "Publish of more than fits")
	var stored []string
	for i, r := range rs {
		switch {
		case r.Err == nil:
			stored = append(stored, string(ms[i].Body))
		case !errors.Is(r.Err, driver.ErrFull):
			t.Errorf("receipt %d says %v, want ErrFull", i, r.Err)
		}
	}
	if len(stored) > 2 {
		t.Fatalf("%d messages stored beyond a bound of 2", len(stored))
	}
	if len(stored) > 0 {
		s.expect(stored...)
	}
	s.idle()
}

// boundLetsReliefPass: what is in the queue already can always be retried, released, emitted from and replayed.
func boundLetsReliefPass(t *T) {
	s := t.bounded(driver.TopicConfig{MaxMessages: 2})
	t.put("a", "b")
	s.retry(s.one(), 0)
	s.release(s.take(2)...)
	ds := s.take(2)
	s.settle(driver.Settlement{Delivery: ds[0], Outcome: driver.Ack, Emit: t.msgs([]string{"e1", "e2", "e3"})})
	t.full("c")
	s.bury(ds[1])
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[1].ID}})
	s.take(4)
}

func boundOfSeveralGroups(t *T) {
	a := t.bounded(driver.TopicConfig{MaxMessages: 1})
	b := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	t.put("a")
	a.ack(a.one())
	t.full("b") // one group has not settled it
	b.ack(b.one())
	t.put("b")
}

func boundFreedByExpiryAndDelete(t *T) {
	t.bounded(driver.TopicConfig{MaxMessages: 2})
	m := t.msg("b")
	t.before(time.Now().Add(unit), func() {
		t.publish(t.msg("a", ttl(unit)), m)
		t.full("c")
		t.ok(t.Delete(t.ctx(), []driver.Target{{Topic: topic, ID: m.ID}})[0], "Delete")
		t.put("c")
		t.full("d")
	})
	t.expired(1)
	t.put("d")
}
