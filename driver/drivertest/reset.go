package drivertest

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// kept settles five messages in a topic that keeps them, one unit apart in the middle, and returns their receipts
// and a time between the third and the fourth.
func (t *T) kept() ([]driver.Receipt, time.Time) {
	t.Helper()
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history; refusal is a case of its own")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	rs := t.put("a1", "a2", "a3")
	t.pass(quiet)
	between := time.Now()
	t.pass(quiet)
	rs = append(rs, t.put("a4", "a5")...)
	s.ack(s.take(5)...)
	s.leave()
	return rs, between
}

// reset resets the default group and compares the report.
func (t *T) reset(o driver.ResetOptions, want driver.ResetReport) {
	t.Helper()
	got, err := t.Reset(t.ctx(), topic, driver.DefaultGroup, o)
	t.ok(err, "Reset")
	t.equal(got, want, "report of the reset")
}

func resetToBegin(t *T) {
	t.kept()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}, DryRun: true},
		driver.ResetReport{Replayed: 5})
	t.counts(0, 0, 0, 0)
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, driver.ResetReport{Replayed: 5})
	t.counts(5, 0, 0, 0)
	s := t.subscribe(driver.SubscribeOptions{})
	for _, d := range s.expect(numbered("a", 5)...) {
		if d.Attempt != 1 || d.Cause != driver.CauseReplay {
			t.Errorf("reset as %s, want attempt 1, cause replay", describe([]*driver.Delivery{d}))
		}
	}
}

func resetToTime(t *T) {
	_, between := t.kept()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromTime, Time: between}},
		driver.ResetReport{Replayed: 2})
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("a4", "a5")
	s.idle()
}

func resetToRef(t *T) {
	rs, _ := t.kept()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromRef, Ref: rs[1].Ref}},
		driver.ResetReport{Replayed: 4})
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("a2", "a3", "a4", "a5")
	s.idle()
}

func resetToEnd(t *T) {
	t.kept()
	t.put("b1", "b2")
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromEnd}, DryRun: true}, driver.ResetReport{Skipped: 2})
	t.counts(2, 0, 0, 0)
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromEnd}}, driver.ResetReport{Skipped: 2})
	t.counts(0, 0, 0, 0)
	t.put("c")
	t.subscribe(driver.SubscribeOptions{}).expect("c")
}

// resetLeavesWhatWaits: what is ready is skipped, and nothing else.
func resetLeavesWhatWaits(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("retried", "parked", "ready")
	ds := s.expect("retried", "parked")
	s.retry(ds[0], time.Hour)
	s.park(ds[1], time.Hour)
	s.leave()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromEnd}}, driver.ResetReport{Skipped: 1})
	t.counts(0, 0, 2, 0)
}

// resetLeavesTheDead: a message is in one state. What is dead stays dead, and what was replayed is there once.
func resetLeavesTheDead(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("dead", "acked", "waits", "replayed", "again")
	ds := s.expect("dead", "acked", "waits", "replayed", "again")
	at := func(i int) driver.Target {
		return driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[i].ID}
	}
	s.ack(ds[1])
	for _, i := range []int{0, 2, 3, 4} {
		s.bury(ds[i])
	}
	t.move(driver.Move{Target: at(2), After: time.Hour}, driver.Move{Target: at(3)}, driver.Move{Target: at(4)})
	again := s.expect("replayed", "again")
	s.release(again[0])
	s.bury(again[1])
	s.leave()
	to := driver.ResetOptions{To: driver.Position{From: driver.FromBegin}, DryRun: true}
	t.reset(to, driver.ResetReport{Replayed: 1})
	to.DryRun = false
	t.reset(to, driver.ResetReport{Replayed: 1})
	t.counts(2, 0, 1, 2)
	for i, want := range []driver.State{driver.StateDead, driver.StateReady, driver.StateWaiting, driver.StateReady,
		driver.StateDead} {
		t.equal(t.get(at(i)).State, want, "state after the reset of "+string(ds[i].Body))
	}
	s = t.subscribe(driver.SubscribeOptions{})
	s.ackAll("acked", "replayed")
	s.idle()
	t.move(driver.Move{Target: at(0)}, driver.Move{Target: at(2)}, driver.Move{Target: at(4)})
	s.ackAll("again", "dead", "waits")
	s.idle()
	t.counts(0, 0, 0, 0)
}

// resetBringsBackWhatWasRetried: also what has ended behind something that has not, and what had ended before it in its
// key.
func resetBringsBackWhatWasRetried(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("a")
	t.putKeyed("k", "b1", "b2")
	a, b1 := s.expect("a")[0], s.expect("b1")[0]
	s.ack(b1)
	s.retry(s.expect("b2")[0], 0)
	s.ack(s.expect("b2")...)
	s.release(a)
	s.leave()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, driver.ResetReport{Replayed: 2})
	t.counts(3, 0, 0, 0)
	t.subscribe(driver.SubscribeOptions{}).ackAll("a", "b1", "b2")
}

// ackAll acknowledges as many deliveries as there are bodies, and demands these in whatever order.
func (s *sub) ackAll(sorted ...string) {
	s.t.Helper()
	s.t.equal(slices.Sorted(slices.Values(bodies(s.gather(len(sorted))))), sorted, "deliveries")
}

// resetToAMillisecond: many backends tell times in milliseconds. What became ready in that of the position or later
// comes again.
func resetToAMillisecond(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("a1")
	t.pass(20 * time.Millisecond)
	t.put("a2")
	ds := s.take(2)
	s.ack(ds...)
	s.leave()
	for _, before := range []time.Duration{0, 1, time.Millisecond / 2, time.Millisecond} {
		t.reset(driver.ResetOptions{DryRun: true, To: driver.Position{From: driver.FromTime,
			Time: ds[1].PublishedAt.Add(-before)}}, driver.ResetReport{Replayed: 1})
	}
	t.reset(driver.ResetOptions{DryRun: true, To: driver.Position{From: driver.FromTime,
		Time: ds[1].PublishedAt.Add(time.Millisecond)}}, driver.ResetReport{})
}

// resetToBeforeAll: a position may be earlier than what a backend can say, and so may the begin of what is kept.
func resetToBeforeAll(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 100 * 365 * 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.put("a")
	s.ack(s.one())
	s.leave()
	positions := []driver.Position{{From: driver.FromBegin}}
	for _, at := range []time.Time{time.UnixMilli(-1), time.UnixMilli(-2), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)} {
		positions = append(positions, driver.Position{From: driver.FromTime, Time: at})
	}
	for _, p := range positions {
		t.reset(driver.ResetOptions{To: p, DryRun: true}, driver.ResetReport{Replayed: 1})
	}
}

// handledWithTTL settles a message with this TTL, and one without, in a topic that keeps them.
func (t *T) handledWithTTL(d time.Duration) {
	t.Helper()
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.publish(t.msg("gone", ttl(d)), t.msg("stays"))
	s.ack(s.take(2)...)
	s.leave()
}

func resetLeavesOutWhatExpired(t *T) {
	t.handledWithTTL(3 * unit) // long enough to be claimed
	t.pass(4 * unit)
	want := driver.ResetReport{Replayed: 1}
	if t.Caps.Counts == driver.CountsEstimated {
		want.Replayed = 2 // it counts places, and finds out when it comes to them
	}
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, want)
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("stays")
	s.idle()
}

func resetExpiresWhatItReplays(t *T) {
	t.before(time.Now().Add(4*unit), func() {
		t.handledWithTTL(4 * unit)
		t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, driver.ResetReport{Replayed: 2})
	})
	t.pass(5 * unit)
	s := t.subscribe(driver.SubscribeOptions{})
	s.expect("stays")
	s.idle()
}

// resetKeepsKeyOrder: what is delivered again comes before what was ready all the time.
func resetKeepsKeyOrder(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: 24 * time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("k", numbered("a", 5)...)
	s.gather(3)
	s.leave()
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, driver.ResetReport{Replayed: 3})
	t.equal(bodies(t.subscribe(driver.SubscribeOptions{}).gather(5)), numbered("a", 5), "order of the key after the reset")
}

func resetWithConsumers(t *T) {
	t.kept()
	s := t.subscribe(driver.SubscribeOptions{})
	to := driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}
	_, err := t.Reset(t.ctx(), topic, driver.DefaultGroup, to)
	t.wantErr(err, driver.ErrConflict, "Reset of a group with a consumer")
	s.idle()
	to.Force = true
	t.reset(to, driver.ResetReport{Replayed: 5})
	s.expect(numbered("a", 5)...)
}

func resetIsOneGroups(t *T) {
	t.kept()
	b := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	t.reset(driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}, driver.ResetReport{Replayed: 5})
	b.idle()
}

func resetUnsupported(t *T) {
	if t.Caps.History != driver.HistoryNone {
		t.Skip("the driver has a history")
	}
	t.put("a")
	begin := driver.Position{From: driver.FromBegin}
	_, err := t.Reset(t.ctx(), topic, driver.DefaultGroup, driver.ResetOptions{To: begin})
	t.wantErr(err, driver.ErrUnsupported, "Reset without history")
	t.hinted(err)
	_, err = t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "x", Lease: longLease, Group: "new",
		Start: begin})
	t.wantErr(err, driver.ErrUnsupported, "Subscribe from the begin without history")
	t.hinted(err)
	t.wantErr(t.EnsureGroup(t.ctx(), topic, "new", driver.GroupOptions{Start: begin}), driver.ErrUnsupported,
		"EnsureGroup from the begin without history")
}

func groupFromTheBegin(t *T) {
	rs, between := t.kept()
	for name, start := range map[string]driver.Position{
		"begin": {From: driver.FromBegin}, "ref": {From: driver.FromRef, Ref: rs[3].Ref},
		"time": {From: driver.FromTime, Time: between},
	} {
		s := t.subscribe(driver.SubscribeOptions{Group: name, Start: start})
		want := []string{"a4", "a5"}
		if name == "begin" {
			want = numbered("a", 5)
		}
		s.ack(s.expect(want...)...)
		s.idle()
	}
	t.ok(t.EnsureGroup(t.ctx(), topic, "ensured", driver.GroupOptions{Start: driver.Position{From: driver.FromBegin}}),
		"EnsureGroup")
	t.subscribe(driver.SubscribeOptions{Group: "ensured"}).expect(numbered("a", 5)...)
}

// groupNeedsKeep: without Keep there is no history for a new group, whatever is not settled; with it there is.
func groupNeedsKeep(t *T) {
	s := t.consumer()
	rs := t.put("settled", "open")
	s.ack(s.expect("settled", "open")[0])
	starts := map[string]driver.Position{
		"begin": {From: driver.FromBegin}, "ref": {From: driver.FromRef, Ref: rs[0].Ref},
		"time": {From: driver.FromTime, Time: time.Now().Add(-time.Hour)},
	}
	for what, start := range starts {
		for _, name := range []string{topic, "nowhere"} {
			t.refuses(t.EnsureGroup(t.ctx(), name, "new", driver.GroupOptions{Start: start}), driver.ErrUnsupported,
				"EnsureGroup from a "+what+" without Keep")
			_, err := t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: name, Group: "new", Instance: "x", Lease: longLease,
				Start: start})
			t.refuses(err, driver.ErrUnsupported, "Subscribe from a "+what+" without Keep")
		}
	}
	t.onlyTopics(topic)
	t.equal(len(t.stats(topic).Groups), 1, "groups after refused calls")
	if t.Caps.History == driver.HistoryNone {
		return
	}
	t.ok(t.EnsureGroup(t.ctx(), topic, driver.DefaultGroup, driver.GroupOptions{Start: starts["begin"]}),
		"EnsureGroup of one that exists")
	t.ok(t.AlterTopic(t.ctx(), topic, t.onePartition(driver.TopicConfig{Keep: time.Hour})), "AlterTopic")
	t.put("kept")
	late := t.subscribe(driver.SubscribeOptions{Group: "new", Start: starts["begin"]})
	for d := late.one(); string(d.Body) != "kept"; d = late.one() { // what was settled before may be gone or not
		late.ack(d)
	}
}

// keptIsShownAndEnds: what is kept is done for everybody, and gone after Keep.
func keptIsShownAndEnds(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	keep := 2 * unit
	t.configure(topic, driver.TopicConfig{Keep: keep})
	s := t.subscribe(driver.SubscribeOptions{})
	rs := t.put("a")
	d := s.one()
	t.before(time.Now().Add(keep), func() {
		s.ack(d)
		e := t.get(driver.Target{Topic: topic, ID: rs[0].ID})
		t.equal(e.State, driver.StateDone, "state of a kept message")
	})
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && st.Messages != 0 {
		t.Errorf("Messages is %d: what is kept must not count", st.Messages)
	}
	if t.Caps.History != driver.HistoryKept {
		return
	}
	s.leave()
	t.until("the kept message is gone", func() bool {
		r, err := t.Reset(t.ctx(), topic, driver.DefaultGroup,
			driver.ResetOptions{To: driver.Position{From: driver.FromBegin}, DryRun: true})
		t.ok(err, "Reset")
		return r.Replayed == 0
	})
}
