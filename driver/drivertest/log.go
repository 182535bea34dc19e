package drivertest

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// log returns what a driver can do that is a log; of others the case says nothing.
func (t *T) log() driver.Log {
	t.Helper()
	l, ok := unwrapped(t.Driver).(driver.Log)
	if !ok {
		t.Skip("the driver is no log")
	}
	return l
}

func (t *T) span(l driver.Log, q driver.RangeQuery) driver.RangePage {
	t.Helper()
	q.Topic = topic
	page, err := l.Range(t.ctx(), q)
	t.ok(err, "Range")
	return page
}

func at(e driver.Entry) driver.Position {
	return driver.Position{From: driver.FromRef, Ref: e.Ref}
}

// logRange: a range has what is in a partition, settled or not, decodable or not, from one position on and before
// another.
func logRange(t *T) {
	l := t.log()
	t.configure(topic, driver.TopicConfig{Keep: time.Hour})
	s := t.subscribe(driver.SubscribeOptions{})
	t.putKeyed("k", "a", "b", "c", "d", "e")
	t.ok(t.PlantRaw(t.ctx(), t.Driver, topic, rubbish), "PlantRaw")
	s.ack(s.take(1)...)
	all := t.span(l, driver.RangeQuery{})
	if len(all.Entries) != 6 || !all.Next.IsZero() {
		t.Fatalf("the range of everything is %+v", all)
	}
	var got []string
	for _, e := range all.Entries[:5] {
		got = append(got, string(e.Body))
		t.equal(e.Key, "k", "key")
	}
	t.equal(got, []string{"a", "b", "c", "d", "e"}, "messages of the range")
	if e := all.Entries[5]; e.State != driver.StateInvalid || e.Problem == "" || e.Message != nil || len(e.Raw) == 0 {
		t.Errorf("what cannot be decoded is %+v", e)
	}
	q := driver.RangeQuery{From: at(all.Entries[1]), To: at(all.Entries[4]), Limit: 2}
	first := t.span(l, q)
	q.From.Ref = first.Next
	rest := t.span(l, q)
	t.equal(len(first.Entries), 2, "entries of the first page")
	t.equal(len(rest.Entries), 1, "entries of the second page")
	t.equal(string(rest.Entries[0].Body), "d", "the last of the range")
	t.equal(rest.Next.IsZero(), true, "no page follows")
	for what, q := range map[string]driver.RangeQuery{
		"from later":       {From: driver.Position{From: driver.FromTime, Time: time.Now().Add(time.Hour)}},
		"up to earlier":    {To: driver.Position{From: driver.FromTime, Time: time.Now().Add(-time.Hour)}},
		"up to the begin":  {To: driver.Position{From: driver.FromBegin}},
		"up to where from": {From: at(all.Entries[2]), To: at(all.Entries[2])},
	} {
		t.equal(len(t.span(l, q).Entries), 0, "entries of a range "+what)
	}
}

// logPartitions: each partition tells what is in it, who reads it, and what a group has not settled of it.
func logPartitions(t *T) {
	l, s := t.log(), t.consumer()
	t.put("a", "b", "c", "d")
	s.ack(s.take(2)[0])
	one := func() driver.PartitionGroup {
		t.Helper()
		ps, err := l.Partitions(t.ctx(), topic)
		t.ok(err, "Partitions")
		if len(ps) != 1 || len(ps[0].Groups) != 1 {
			t.Fatalf("partitions %+v, want one with one group", ps)
		}
		if p := ps[0]; p.Entries < 3 || p.Entries > 4 || p.First.IsZero() || p.Last.IsZero() || p.Last == p.First {
			t.Errorf("a partition of four messages, one of them settled, is %+v", p)
		}
		return ps[0].Groups[0]
	}
	t.until("three are read or to be read", func() bool { g := one(); return g.Lag+g.Pending == 3 })
	g := one()
	t.equal(g.Group, driver.DefaultGroup, "group")
	t.equal(g.Owner, "tester", "owner")
	s.leave()
	t.until("nobody owns it", func() bool { return one().Owner == "" })
	_, err := l.Partitions(t.ctx(), "unknown")
	t.wantErr(err, driver.ErrNotFound, "Partitions of an unknown topic")
}

// logPending: what is in flight is pending, page by page, with who has it and how often it was delivered.
func logPending(t *T) {
	l, s := t.log(), t.consumer()
	t.put("a", "b", "c", "d", "e")
	ds := s.take(3)
	q := driver.PendingQuery{Topic: topic, Group: driver.DefaultGroup, Limit: 2}
	var held []driver.Ref
	for more := true; more; more = q.Cursor != "" {
		page, err := l.Pending(t.ctx(), q)
		t.ok(err, "Pending")
		if len(page.Entries) > 2 {
			t.Fatalf("a page of %d, want 2 at most", len(page.Entries))
		}
		for _, e := range page.Entries {
			if e.State == driver.StateInflight {
				held = append(held, e.Ref)
				if e.Deliveries != 1 || e.Instance != "tester" || e.ID == "" {
					t.Errorf("what is in flight is %+v", e)
				}
			}
		}
		q.Cursor = page.Next
	}
	t.equal(held, []driver.Ref{ds[0].Ref, ds[1].Ref, ds[2].Ref}, "what is in flight")
	_, err := l.Pending(t.ctx(), driver.PendingQuery{Topic: topic, Group: "unknown"})
	t.wantErr(err, driver.ErrNotFound, "Pending of an unknown group")
	other, err := l.Pending(t.ctx(), driver.PendingQuery{Topic: topic, Group: driver.DefaultGroup, Instance: "another"})
	if !errors.Is(err, driver.ErrUnsupported) { // who cannot tell says so
		t.ok(err, "Pending of an instance")
		t.equal(len(other.Entries), 0, "entries of another instance")
	}
}

// logReplay: what is kept of a range comes again in the group it is replayed for, in order, and to no other. What is
// not settled stays as it is.
func logReplay(t *T) {
	l := t.log()
	t.configure(topic, driver.TopicConfig{Keep: time.Hour})
	t.ok(t.EnsureGroup(t.ctx(), topic, "other", driver.GroupOptions{}), "EnsureGroup")
	s := t.subscribe(driver.SubscribeOptions{MaxRun: 10})
	t.putKeyed("k", "a", "b", "c", "d", "e", "f")
	ds := s.expect("a", "b", "c", "d", "e", "f")
	s.ack(ds[:5]...)
	o := driver.ReplayOptions{From: driver.Position{From: driver.FromRef, Ref: ds[1].Ref}, DryRun: true}
	for range 2 {
		report, err := l.Replay(t.ctx(), topic, driver.DefaultGroup, o)
		t.ok(err, "Replay")
		t.equal(report, driver.ResetReport{Replayed: 4}, "report of a replay")
		o.DryRun = false
	}
	s.ack(ds[5])
	again := s.take(4)
	t.equal(bodies(again), []string{"b", "c", "d", "e"}, "what is replayed")
	for _, d := range again {
		t.equal(d.Cause, driver.CauseReplay, "cause of "+string(d.Body))
	}
	s.ack(again...)
	s.idle()
	o.To = driver.Position{From: driver.FromRef, Ref: ds[2].Ref}
	report, err := l.Replay(t.ctx(), topic, driver.DefaultGroup, o)
	t.ok(err, "Replay of a range that was replayed before")
	t.equal(report.Replayed, 1, "messages that are replayed once more")
	s.ack(s.expect("b")...)
	x := t.subscribe(driver.SubscribeOptions{Group: "other", MaxRun: 10})
	x.ack(x.expect("a", "b", "c", "d", "e", "f")...)
	x.idle()
	_, err = l.Replay(t.ctx(), topic, "unknown", o)
	t.wantErr(err, driver.ErrNotFound, "Replay for an unknown group")
}

// logRetention: a retention is kept as it was set, or refused.
func logRetention(t *T) {
	l := t.log()
	t.put("a")
	for _, r := range []driver.Retention{{}, {Entries: 10_000}, {Age: time.Hour, DropUnsettled: true}} {
		err := l.Retain(t.ctx(), topic, r)
		if errors.Is(err, driver.ErrUnsupported) && r != (driver.Retention{}) {
			t.hinted(err)
			_, err = l.Trim(t.ctx(), topic)
			t.wantErr(err, driver.ErrUnsupported, "Trim where no retention can be set")
			r = driver.Retention{}
		} else {
			t.ok(err, "Retain")
		}
		got, err := l.Retention(t.ctx(), topic)
		t.ok(err, "Retention")
		t.equal(got, r, "retention")
	}
	t.equal(len(t.browse(driver.StateReady)), 1, "messages that are not settled")
}
