package drivertest

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// refuses demands that an error is of this kind, says what to do, and stays short whatever was passed.
func (t *T) refuses(err, kind error, what string) {
	t.Helper()
	t.wantErr(err, kind, what)
	t.hinted(err)
	if n := len(err.Error()); n > 1000 {
		t.Fatalf("%s: the error has %d bytes", what, n)
	}
}

// onlyTopics demands that refused calls have made no topic but these.
func (t *T) onlyTopics(want ...string) {
	t.Helper()
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	var got []string
	for _, info := range infos {
		got = append(got, info.Topic)
	}
	t.equal(got, want, "topics")
}

// huge is text that would fill a log.
var huge = strings.Repeat("x", 1<<20)

// badMessages returns messages that no driver may store, for a topic that does not exist.
func (t *T) badMessages() map[string]*driver.Message {
	ms := map[string]*driver.Message{"nil": nil}
	for what, change := range map[string]func(*driver.Message){
		"no id":              func(m *driver.Message) { m.ID = "" },
		"a huge id":          func(m *driver.Message) { m.ID = huge },
		"control characters": func(m *driver.Message) { m.ID = "a\nb" },
		"a bad topic":        func(m *driver.Message) { m.Topic = "a b" },
		"a huge topic":       func(m *driver.Message) { m.Topic = huge },
		"a huge key":         func(m *driver.Message) { m.Key = huge },
		"a nameless header":  func(m *driver.Message) { m.Headers = map[string]string{"": "v"} },
		"a negative TTL":     func(m *driver.Message) { m.TTL = -1 },
		"a bad priority":     func(m *driver.Message) { m.Priority = 9 },
		"half a dedup":       func(m *driver.Message) { m.DedupID = "d" },
		"two schedules":      func(m *driver.Message) { m.Delay, m.At = time.Second, time.Now().Add(time.Hour) },
		"a time too far":     func(m *driver.Message) { m.At = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) },
		"a time beyond all":  func(m *driver.Message) { m.At = time.Unix(1<<61, 0) },
		"too many attempts":  func(m *driver.Message) { m.MaxAttempts = math.MaxInt32 + 1 },
		"a bad retry policy": func(m *driver.Message) { m.Retry = &driver.RetryPolicy{Base: -1} },
	} {
		ms[what] = t.msg("bad", to(other), change)
	}
	return ms
}

// badMessagesRefused: each is refused alone, and an atomic publish as a whole.
func badMessagesRefused(t *T) {
	t.oneLane(topic)
	want := 0
	for what, m := range t.badMessages() {
		rs, err := t.Publish(t.ctx(), []*driver.Message{t.msg("a"), m, t.msg("b")}, driver.PublishOptions{})
		t.wantErr(err, driver.ErrInvalid, "Publish of a message with "+what)
		if rs[0].Err != nil || rs[2].Err != nil {
			t.Fatalf("Publish around a message with %s: %v, %v", what, rs[0].Err, rs[2].Err)
		}
		t.refuses(rs[1].Err, driver.ErrInvalid, "receipt of a message with "+what)
		want += 2
		if t.Caps.AtomicPublish == driver.AtomicNever || t.Caps.AtomicPublish == driver.AtomicTransaction {
			continue
		}
		rs, err = t.Publish(t.ctx(), []*driver.Message{t.msg("c"), m}, driver.PublishOptions{Atomic: true})
		t.refuses(err, driver.ErrInvalid, "atomic Publish with a message with "+what)
		t.refuses(rs[0].Err, driver.ErrInvalid, "receipt beside a message with "+what)
	}
	t.onlyTopics(topic)
	t.equal(len(t.pages(driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady})), want,
		"messages stored")
}

func receiveOfNone(t *T) {
	s := t.consumer()
	t.put("a")
	for _, n := range []int{0, -1, math.MinInt} {
		_, err := s.Receive(t.ctx(), n)
		t.refuses(err, driver.ErrInvalid, "Receive of none")
	}
	ds, err := s.Receive(t.ctx(), math.MaxInt)
	t.ok(err, "Receive of any number")
	t.equal(bodies(ds), []string{"a"}, "deliveries")
}

// badSettlements are refused one by one; their delivery stays held.
func badSettlements(t *T) {
	s := t.consumer()
	t.put("held", "a", "b")
	ds := s.expect("held", "a", "b")
	bad := []driver.Settlement{
		{},
		{Delivery: &driver.Delivery{Token: ds[0].Token}},
		{Delivery: ds[0], Outcome: driver.Drop + 1},
		{Delivery: ds[0], Outcome: math.MaxUint8, After: time.Hour},
		{Delivery: ds[0], Outcome: driver.Ack, Unseen: true},
		{Delivery: ds[0], Outcome: driver.Dead, Unseen: true},
	}
	for _, m := range t.badMessages() {
		bad = append(bad, driver.Settlement{Delivery: ds[0], Emit: []*driver.Message{t.msg("good", to(other)), m}})
	}
	ss := slices.Concat([]driver.Settlement{{Delivery: ds[1]}}, bad, []driver.Settlement{{Delivery: ds[2]}})
	errs := s.errs(ss...)
	for i, err := range errs[1 : len(errs)-1] {
		t.refuses(err, driver.ErrInvalid, "Settle of "+describeSettlement(bad[i]))
	}
	t.ok(errs[0], "Settle before what is refused")
	t.ok(errs[len(errs)-1], "Settle behind what is refused")
	t.onlyTopics(topic)
	s.extend(ds[0])
	s.ack(ds[0])
	s.idle()
}

func describeSettlement(x driver.Settlement) string {
	switch {
	case x.Delivery == nil || x.Delivery.Message == nil:
		return "no delivery"
	case len(x.Emit) > 0:
		return "a bad follow-up"
	}
	return x.Outcome.String()
}

func badExtensions(t *T) {
	s := t.consumer()
	t.put("a", "b")
	ds := s.expect("a", "b")
	errs := s.Extend(t.ctx(), []*driver.Delivery{ds[0], nil, {}, ds[1]})
	t.ok(errs[0], "Extend before a nil one")
	t.refuses(errs[1], driver.ErrInvalid, "Extend of a nil delivery")
	t.refuses(errs[2], driver.ErrInvalid, "Extend of an empty delivery")
	t.ok(errs[3], "Extend behind a nil one")
	errs = s.Begin(t.ctx(), []*driver.Delivery{ds[0], nil, {}, ds[1]})
	t.ok(errs[0], "Begin before a nil one")
	t.refuses(errs[1], driver.ErrInvalid, "Begin of a nil delivery")
	t.refuses(errs[2], driver.ErrInvalid, "Begin of an empty delivery")
	t.ok(errs[3], "Begin behind a nil one")
	s.ack(ds...)
}

// foreignToken is a token that no driver has made.
type foreignToken struct{}

func (foreignToken) String() string { return huge }

// foreignDeliveries: only the subscription that received a delivery can end or extend it.
func foreignDeliveries(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.expect("a")[0]
	second := t.subscribe(driver.SubscribeOptions{Instance: "second"})
	elsewhere := t.subscribe(driver.SubscribeOptions{Topic: other})
	forged, nameless := *d, *d
	forged.Token, nameless.Token = foreignToken{}, nil
	for what, c := range map[string]struct {
		by *sub
		d  *driver.Delivery
	}{"a forged token": {s, &forged}, "no token": {s, &nameless}, "another member's": {second, d},
		"another topic's": {elsewhere, d}} {
		for outcome := driver.Ack; outcome <= driver.Drop; outcome++ {
			t.refuses(c.by.errs(driver.Settlement{Delivery: c.d, Outcome: outcome})[0], driver.ErrLeaseLost,
				outcome.String()+" with "+what)
		}
		t.refuses(c.by.Extend(t.ctx(), []*driver.Delivery{c.d})[0], driver.ErrLeaseLost, "Extend with "+what)
		t.refuses(c.by.Begin(t.ctx(), []*driver.Delivery{c.d})[0], driver.ErrLeaseLost, "Begin with "+what)
	}
	s.ack(d)
}

// afterOutOfRange: less than zero is now, and beyond all calendars is waiting.
func afterOutOfRange(t *T) {
	s := t.consumer()
	id := t.put("a")[0].ID
	d := s.one()
	for _, after := range []time.Duration{-1, math.MinInt64} {
		s.retry(d, after)
		d = s.one()
		s.park(d, after)
		d = s.one()
	}
	target := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: id}
	for _, wait := range []func(){
		func() { s.retry(d, math.MaxInt64) },
		func() { s.park(d, math.MaxInt64) },
		func() { s.retry(d, time.Hour); t.move(driver.Move{Target: target, After: math.MaxInt64}) },
	} {
		wait()
		s.idle()
		if e := t.get(target); e.State != driver.StateWaiting || time.Until(e.DueAt) < 200*365*24*time.Hour {
			t.Fatalf("after an endless wait it is %s until %v", e.State, e.DueAt)
		}
		t.move(driver.Move{Target: target, After: math.MinInt64})
		d = s.one()
	}
	s.ack(d)
}
