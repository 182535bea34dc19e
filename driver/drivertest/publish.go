package drivertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func publishReceipts(t *T) {
	t.oneLane(topic)
	ms := t.msgs(numbered("a", 5))
	seen := map[driver.Ref]bool{}
	for i, r := range t.publish(ms...) {
		if r.ID != ms[i].ID || r.Duplicate || r.Err != nil {
			t.Errorf("receipt %d is %+v, want the id %q and nothing else", i, r, ms[i].ID)
		}
		if r.Ref.IsZero() {
			continue // the backend cannot tell
		}
		if seen[r.Ref] {
			t.Errorf("receipt %d repeats the ref %s", i, r.Ref)
		}
		seen[r.Ref] = true
		t.equal(t.get(driver.Target{Topic: topic, Ref: r.Ref}).ID, ms[i].ID, "id of the message at the ref of its receipt")
	}
}

func publishOneReceiptEach(t *T) {
	if t.Caps.Bound == driver.BoundEstimated {
		t.Skip("the bound is an estimate")
	}
	t.oneLane(topic)
	t.configure(other, driver.TopicConfig{MaxMessages: 1})
	t.publish(t.msg("fills it", to(other)))
	ms := []*driver.Message{t.msg("a"), t.msg("too many", to(other)), t.msg("b")}
	rs, err := t.Publish(t.ctx(), ms, driver.PublishOptions{})
	t.wantErr(err, driver.ErrFull, "Publish with one message too many")
	if len(rs) != 3 || rs[0].Err != nil || !errors.Is(rs[1].Err, driver.ErrFull) || rs[2].Err != nil {
		t.Fatalf("receipts %+v, want only the second to be ErrFull", rs)
	}
	t.subscribe(driver.SubscribeOptions{}).expect("a", "b")
}

func publishOrder(t *T) {
	s := t.consumer()
	want := numbered("a", 30)
	t.put(want[:10]...)
	for _, b := range want[10:20] {
		t.put(b)
	}
	t.put(want[20:]...)
	s.expect(want...)
}

// publishSentAhead: what a Pipeliner sends before it knows what became of what it sent before keeps its order.
func publishSentAhead(t *T) {
	p, ok := unwrapped(t.Driver).(driver.Pipeliner)
	if !ok {
		t.Skip("the driver sends nothing ahead")
	}
	s := t.consumer()
	want := numbered("a", 30)
	var waits []func() ([]driver.Receipt, error)
	for part := range slices.Chunk(want, 10) {
		waits = append(waits, p.Send(t.ctx(), t.msgs(part), driver.PublishOptions{}))
	}
	waits = append(waits, p.Send(t.ctx(), nil, driver.PublishOptions{}))
	for i, wait := range slices.Backward(waits) { // in any order
		rs, err := wait()
		t.ok(err, "Send")
		t.equal(len(rs), min(10, len(want)-10*i), "number of receipts")
	}
	s.expect(want...)
}

func publishNothing(t *T) {
	rs, err := t.Publish(t.ctx(), nil, driver.PublishOptions{})
	t.ok(err, "Publish of no messages")
	t.equal(len(rs), 0, "number of receipts")
}

func publishManyTopics(t *T) {
	t.publish(t.msg("a"), t.msg("b", to(other)), t.msg("c"), t.msg("d", to(other)))
	s, o := t.subscribe(driver.SubscribeOptions{}), t.subscribe(driver.SubscribeOptions{Topic: other})
	t.equal(sorted(bodies(s.take(2))), []string{"a", "c"}, "deliveries of the first topic")
	t.equal(sorted(bodies(o.take(2))), []string{"b", "d"}, "deliveries of the second topic")
}

func publishRetainsNothing(t *T) {
	s := t.consumer()
	m := t.msg("original", key("k"))
	m.Headers = map[string]string{"trace": "1"}
	m.Retry = &driver.RetryPolicy{Delays: []time.Duration{unit}}
	want := m.Clone()
	ms := []*driver.Message{m}
	t.publish(ms...)
	t.equal(m, want, "the caller's message after Publish")
	copy(m.Body, "XXXXXXXX")
	m.Headers["trace"], m.Headers["more"] = "2", "3"
	m.Retry.Delays[0], m.Key, m.ID, m.Priority = 0, "other", "other", driver.Low
	ms[0] = nil
	t.whole(s.one().Message, want)
}

func deliveryIsTheCallers(t *T) {
	s := t.consumer()
	m := t.msg("original")
	m.Headers = map[string]string{"trace": "1"}
	m.Retry = &driver.RetryPolicy{Delays: []time.Duration{unit}}
	want := m.Clone()
	t.publish(m)
	for range 3 {
		d := s.one()
		t.whole(d.Message, want)
		copy(d.Body, "XXXXXXXX")
		d.Headers["trace"] = "2"
		d.Retry.Delays[0] = 0
		s.release(d)
	}
	d := s.one()
	t.whole(d.Message, want)
	copy(d.Body, "XXXXXXXX")
	s.retry(d, 0)
	t.whole(s.one().Message, want)
}

func bodiesByteExact(t *T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	s := t.consumer()
	for _, body := range []string{"", "\x00", string(all), "\xff\xfe", "摆渡 ✓", strings.Repeat("\r\n", 5000)} {
		m := t.msg(body)
		m.ContentType = "application/octet-stream"
		m.Headers = map[string]string{"摆渡": "渡", "empty": "", "binary": "\x00\xff\r\n", "json": `{"a":"\"b"}`}
		t.publish(m)
		d := s.one()
		t.whole(d.Message, m)
		s.ack(d)
	}
}

func bodyOfMaxSize(t *T) {
	body := strings.Repeat("ferry-\x00\xff", t.Caps.MaxBody/8+1)[:t.Caps.MaxBody]
	t.publish(t.msg(body))
	if d := t.subscribe(driver.SubscribeOptions{}).one(); string(d.Body) != body {
		t.Fatalf("a body of %d bytes came back changed, with %d bytes", len(body), len(d.Body))
	}
}

func messageArrivesWhole(t *T) {
	s := t.consumer()
	m := &driver.Message{
		ID: "own id / 1", OwnID: true, Topic: topic, Key: "customer 7 ✓", Body: []byte("{}"), ContentType: "application/json",
		Headers: map[string]string{"a": "1", "b": "2"}, Priority: driver.High, Delay: time.Millisecond, TTL: 48 * time.Hour,
		DedupID: "order 7", DedupWindow: time.Minute, MaxAttempts: 7,
		Retry: &driver.RetryPolicy{Base: unit, Factor: 1.5, Cap: time.Hour, NoJitter: true, MaxElapsed: 2 * time.Hour},
	}
	before := time.Now()
	t.publish(m)
	d := s.one()
	t.whole(d.Message, m)
	t.counted(d, 1, 1, driver.CauseFirst)
	t.equal(d.Group, driver.DefaultGroup, "group of the delivery")
	if skew := d.PublishedAt.Sub(before).Abs(); skew > t.Late+time.Minute {
		t.Errorf("PublishedAt is %v, %v away from the publish", d.PublishedAt, skew)
	}
}

func publishedAtIsTheBackends(t *T) {
	m := t.msg("a")
	m.PublishedAt = time.Unix(1, 0)
	t.publish(m)
	if d := t.subscribe(driver.SubscribeOptions{}).one(); d.PublishedAt.Equal(m.PublishedAt) || d.PublishedAt.IsZero() {
		t.Errorf("PublishedAt is %v, want the backend's time of storing it", d.PublishedAt)
	}
}

// publishCancelled: a publish that was cancelled says so, and what it says is true.
func publishCancelled(t *T) {
	t.oneLane(topic)
	ctx, cancel := context.WithCancel(t.ctx())
	cancel()
	rs, err := t.Publish(ctx, t.msgs(numbered("a", 3)), driver.PublishOptions{})
	if len(rs) != 3 {
		t.Fatalf("Publish of 3 messages returned %d receipts and %v", len(rs), err)
	}
	stored, unknown := 0, 0
	for _, r := range rs {
		switch {
		case r.Err == nil:
			stored++
		case errors.Is(r.Err, driver.ErrUnknown):
			unknown++
		case !errors.Is(r.Err, driver.ErrNotApplied):
			t.Errorf("receipt of a cancelled publish says %v, want ErrUnknown or ErrNotApplied", r.Err)
		}
	}
	if (err == nil) != (stored == 3) {
		t.Errorf("Publish returned %v although %d of 3 receipts have no error", err, stored)
	}
	t.put("z")
	if n := int(t.stats(topic).Published) - 1; t.Caps.Counts == driver.CountsExact && (n < stored || n > stored+unknown) {
		t.Errorf("%d messages stored; receipts say %d, and %d unknown", n, stored, unknown)
	}
}
