package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// get returns the one entry that Get finds.
func (t *T) get(target driver.Target) driver.Entry {
	t.Helper()
	es, err := t.Get(t.ctx(), target)
	t.ok(err, "Get")
	if len(es) != 1 {
		t.Fatalf("Get of %+v found %d entries, want 1: %+v", target, len(es), es)
	}
	return es[0]
}

// browse returns all entries of one state, of the default group where the state belongs to one.
func (t *T) browse(state driver.State) []driver.Entry {
	t.Helper()
	switch state {
	case driver.StateDelayed, driver.StateHeld, driver.StateInvalid:
		return t.pages(driver.Query{Topic: topic, State: state})
	}
	return t.browseGroup(driver.DefaultGroup, state)
}

func (t *T) browseGroup(group string, state driver.State) []driver.Entry {
	t.Helper()
	return t.pages(driver.Query{Topic: topic, Group: group, State: state})
}

// pages follows the cursor to the end.
func (t *T) pages(q driver.Query) []driver.Entry {
	t.Helper()
	var all []driver.Entry
	for range 10_000 {
		p, err := t.Browse(t.ctx(), q)
		t.ok(err, "Browse")
		if q.Limit > 0 && len(p.Entries) > q.Limit {
			t.Fatalf("Browse returned %d entries, more than the limit of %d", len(p.Entries), q.Limit)
		}
		if q.MaxScan > 0 && p.Scanned > q.MaxScan {
			t.Fatalf("Browse looked at %d entries, more than the limit of %d", p.Scanned, q.MaxScan)
		}
		all = append(all, p.Entries...)
		if p.Next == "" {
			return all
		}
		q.Cursor = p.Next
	}
	t.Fatalf("Browse of %s does not come to an end", q.State)
	return nil
}

func entryBodies(es []driver.Entry) []string {
	var s []string
	for _, e := range es {
		s = append(s, string(e.Body))
	}
	return s
}

func browseEachState(t *T) {
	t.configure(topic, driver.TopicConfig{})
	s := t.subscribe(driver.SubscribeOptions{Instance: "host-7"})
	t.put("dead", "waiting", "inflight")
	ds := s.expect("dead", "waiting", "inflight")
	s.bury(ds[0])
	s.retry(ds[1], time.Hour)
	t.put("ready")
	t.publish(t.msg("delayed", delay(time.Hour)), t.msg("held", delay(driver.Hold)))
	for _, state := range []driver.State{driver.StateReady, driver.StateInflight, driver.StateWaiting, driver.StateDead,
		driver.StateDelayed, driver.StateHeld} {
		es := t.browse(state)
		t.equal(entryBodies(es), []string{string(state)}, "entries in state "+string(state))
		t.equal(es[0].State, state, "state of the entry")
		want := driver.DefaultGroup
		if state == driver.StateDelayed || state == driver.StateHeld {
			want = ""
		}
		t.equal(es[0].Group, want, "group of the entry")
		if due := state == driver.StateDelayed || state == driver.StateWaiting; due == es[0].DueAt.IsZero() {
			t.Errorf("DueAt of an entry in state %s is %v", state, es[0].DueAt)
		}
	}
	t.equal(t.browse(driver.StateWaiting)[0].Attempt, 2, "attempt of the waiting entry")
}

func browseByPages(t *T) {
	t.oneLane(topic)
	const n = 137
	for i := range n {
		t.publish(t.msg(fmt.Sprint(i), prio(lanes[i%4]), key([]string{"", "k", "j"}[i%3])))
	}
	t.publish(t.msgs(make([]string, 60), delay(time.Hour))...)
	for _, limit := range []int{1, 10, 100, 1000} {
		es := t.pages(driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: limit,
			MaxScan: 1000})
		seen := map[string]bool{}
		for _, e := range es {
			if seen[e.ID] {
				t.Fatalf("pages of %d show %s twice", limit, e.ID)
			}
			seen[e.ID] = true
		}
		t.equal(len(seen), n, fmt.Sprintf("ready entries in pages of %d", limit))
	}
	t.equal(len(t.pages(driver.Query{Topic: topic, State: driver.StateDelayed, Limit: 7})), 60,
		"delayed entries in pages of 7")
}

func browseIsOldestFirst(t *T) {
	t.oneLane(topic)
	t.put(numbered("a", 20)...)
	t.equal(entryBodies(t.pages(driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady,
		Limit: 6})), numbered("a", 20), "ready entries")
}

func browseIsBounded(t *T) {
	t.oneLane(topic)
	t.publish(t.msgs(make([]string, 300))...)
	es := t.pages(driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 50, MaxScan: 20})
	t.equal(len(es), 300, "entries found with a small MaxScan")
	p, err := t.Browse(t.ctx(), driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady})
	t.ok(err, "Browse")
	t.equal(len(p.Entries), 100, "entries of a page by default")
}

// browseWhileChanging: what is there the whole time is found, whatever happens around it.
func browseWhileChanging(t *T) {
	s := t.consumer()
	t.put(numbered("a", 100)...)
	q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 10}
	var got []string
	for range 1000 {
		p, err := t.Browse(t.ctx(), q)
		t.ok(err, "Browse")
		got = append(got, entryBodies(p.Entries)...)
		if q.Cursor = p.Next; q.Cursor == "" {
			break
		}
		if len(got) <= 50 {
			s.ack(s.take(2)...) // from the head
			t.put("new")        // at the tail
		}
	}
	for _, b := range numbered("a", 100)[50:] {
		if !slices.Contains(got, b) {
			t.Errorf("%s was there the whole time and is on no page", b)
		}
	}
}

func getByRefAndID(t *T) {
	t.group("audit")
	t.group("billing")
	m := t.msg("a", key("k"))
	r := t.publish(m)[0]
	s := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	d := s.one()
	for _, target := range []driver.Target{{Topic: topic, ID: m.ID}, {Topic: topic, Ref: d.Ref},
		{Topic: topic, Ref: d.Ref, ID: "ignored"}} {
		es, err := t.Get(t.ctx(), target)
		t.ok(err, "Get")
		states := map[string]driver.State{}
		for _, e := range es {
			t.whole(e.Message, m)
			states[e.Group] = e.State
		}
		t.equal(states, map[string]driver.State{"audit": driver.StateInflight, "billing": driver.StateReady},
			"states of the groups")
	}
	t.equal(t.get(driver.Target{Topic: topic, Group: "billing", ID: m.ID}).State, driver.StateReady, "state of one group")
	if !r.Ref.IsZero() {
		t.equal(d.Ref, r.Ref, "ref of the delivery and of the receipt")
	}
}

// getWhatIsDelayedInAGroup: what waits for all groups waits for each.
func getWhatIsDelayedInAGroup(t *T) {
	t.group("audit")
	for _, wait := range []time.Duration{time.Hour, driver.Hold} {
		m := t.msg("a", delay(wait))
		t.publish(m)
		e := t.get(driver.Target{Topic: topic, Group: "audit", ID: m.ID})
		t.equal(e.Group, "", "group of an entry that waits for all")
		t.equal([]int{e.Attempt, e.Deliveries}, []int{1, 1}, "attempt and delivery that comes next")
		t.equal(t.browse(e.State)[0], e, "entry of Browse")
		t.equal(e, t.get(driver.Target{Topic: topic, ID: m.ID}), "entry without a group")
		if !e.Ref.IsZero() {
			t.equal(t.get(driver.Target{Topic: topic, Group: "audit", Ref: e.Ref}), e, "entry by its Ref")
		}
	}
}

func getAfterSettling(t *T) {
	s := t.consumer()
	m := t.msg("a")
	t.publish(m)
	s.ack(s.one())
	if t.Caps.History == driver.HistoryUnlimited {
		return // the log still has it
	}
	_, err := t.Get(t.ctx(), driver.Target{Topic: topic, ID: m.ID})
	t.wantErr(err, driver.ErrNotFound, "Get of a settled message that is not kept")
}

func topicsAreSorted(t *T) {
	for _, name := range []string{"b", "a", "c.d", "c-d", "B"} {
		t.publish(t.msg("x", to(name)))
	}
	infos, err := t.Topics(t.ctx())
	t.ok(err, "Topics")
	var names []string
	for _, i := range infos {
		names = append(names, i.Topic)
		t.equal(i.Groups, []string{driver.DefaultGroup}, "groups")
	}
	t.equal(names, []string{"B", "a", "b", "c-d", "c.d"}, "topics")
}

// Names that are asked for twice, that do not exist and that cannot exist change nothing.
func topicsByName(t *T) {
	for _, name := range []string{"b", "a", "c"} {
		t.publish(t.msg("x", to(name)))
	}
	for _, asked := range [][]string{{"c", "a"}, {"c", "a", "c"}, {"missing", "a", "c"}, {"", "a", "not a name", "c"}} {
		infos, err := t.Topics(t.ctx(), asked...)
		t.ok(err, "Topics")
		var names []string
		for _, i := range infos {
			names = append(names, i.Topic)
			t.equal(i.Groups, []string{driver.DefaultGroup}, "groups")
		}
		t.equal(names, []string{"a", "c"}, fmt.Sprintf("topics of %q", asked))
	}
	infos, err := t.Topics(t.ctx(), "missing")
	t.ok(err, "Topics")
	t.equal(len(infos), 0, "topics of a name that does not exist")
}

func groupsAreSorted(t *T) {
	for _, g := range []string{"zeta", "alpha", "mid"} {
		t.group(g)
	}
	t.equal(t.groupsOf(topic), []string{"alpha", "mid", "zeta"}, "groups of Topics")
	var names []string
	for _, g := range t.stats(topic).Groups {
		names = append(names, g.Group)
	}
	t.equal(names, []string{"alpha", "mid", "zeta"}, "groups of Stats")
}

// statsBalanceAlways checks the equations after every step of a busy scenario.
func statsBalanceAlways(t *T) {
	s := t.consumer()
	audit := t.subscribe(driver.SubscribeOptions{Group: "audit", Instance: "2"})
	step := func(f func()) { t.Helper(); f(); t.balanced() }
	step(func() { t.put(numbered("a", 6)...); t.putKeyed("k", "k1", "k2") })
	step(func() { t.publish(t.msg("d", delay(unit)), t.msg("h", delay(driver.Hold)), t.msg("e", ttl(unit))) })
	var ds []*driver.Delivery
	step(func() { ds = s.take(6) })
	for i, o := range outcomes {
		step(func() { s.settle(driver.Settlement{Delivery: ds[i], Outcome: o, After: unit, Failure: failure("x")}) })
	}
	step(func() { audit.take(4) })
	step(audit.leave)
	step(func() { t.pass(2 * unit) })
	step(func() { s.ack(ds[5]); s.ack(s.take(2)...) })
	step(func() {
		t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[2].ID}})
	})
	step(func() { _, err := t.Purge(t.ctx(), topic, "audit"); t.ok(err, "Purge") })
	step(func() { _, err := t.Purge(t.ctx(), topic, ""); t.ok(err, "Purge") })
	st := t.stats(topic)
	if t.Caps.Counts == driver.CountsExact && (st.Published != 11 || st.Messages != 1 || st.Held != 1) {
		t.Errorf("Stats %+v, want 11 published and nothing left but what is held", st)
	}
}

func oldestIsHowLongItWaits(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("counts are estimates")
	}
	t.oneLane(topic)
	start := time.Now()
	t.put("a")
	t.pass(unit)
	t.put("b")
	if o := t.groupStats(driver.DefaultGroup).Oldest; o < unit-t.clockSlack() || o > unit+t.Late+t.stalledSince(start) {
		t.Errorf("Oldest is %v for a message that waits for %v", o, unit)
	}
	s := t.subscribe(driver.SubscribeOptions{})
	s.ack(s.take(2)...)
	t.equal(t.groupStats(driver.DefaultGroup).Oldest, time.Duration(0), "Oldest of an empty group")
}

// oldestCountsFromWhenItWasDue: a backend may notice late that a delay has ended, and nobody may be there to notice it.
func oldestCountsFromWhenItWasDue(t *T) {
	if t.Caps.Counts != driver.CountsExact {
		t.Skip("counts are estimates")
	}
	late := func(what string) {
		t.Helper()
		t.pass(3 * unit)
		// A server reads its clock once for all the commands that came together, so that it may tell less than it is.
		if o := t.groupStats(driver.DefaultGroup).Oldest; o < 2*unit-unit/2 || o > 2*unit+t.Late {
			t.Errorf("Oldest is %v for a %s that is due for %v", o, what, 2*unit)
		}
	}
	t.oneLane(topic)
	t.publish(t.msg("a", delay(unit)))
	late("delayed message")
	s := t.consumer()
	s.retry(s.one(), unit)
	late("retry")
	s.ack(s.one())
}

func usageIsPlausible(t *T) {
	t.put(strings.Repeat("a", 4096))
	u, err := t.Usage(t.ctx())
	t.ok(err, "Usage")
	if min(u.Memory, u.MemoryLimit, u.Disk, u.DiskFree, int64(u.Connections)) < 0 {
		t.Errorf("Usage answered a negative number: %+v", u)
	}
	if t.Capabilities().Local && u.Memory < 4096 {
		t.Errorf("Usage answered %d bytes of memory while a body of 4096 is held", u.Memory)
	}
}

// hintsNameNoInternalTopic: who mistypes a topic is not told of Ferry's own.
func hintsNameNoInternalTopic(t *T) {
	t.ok(t.EnsureTopic(t.ctx(), "ferry.internal", driver.TopicConfig{}), "EnsureTopic")
	t.publish(t.msg("x"))
	_, err := t.Stats(t.ctx(), "mistyped")
	t.wantErr(err, driver.ErrNotFound, "Stats of a topic that does not exist")
	if strings.Contains(err.Error(), "ferry.internal") {
		t.Errorf("the error names an internal topic: %v", err)
	}
}
