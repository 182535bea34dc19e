package drivertest

import (
	"math"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// badTargets are refused by whoever looks for a message.
func badTargets(t *T) {
	t.put("a")
	id := "m"
	for what, target := range map[string]driver.Target{
		"no topic":             {ID: id},
		"a bad topic":          {Topic: "a b", ID: id},
		"a huge topic":         {Topic: huge, ID: id},
		"a bad group":          {Topic: topic, Group: "{x}", ID: id},
		"a huge group":         {Topic: topic, Group: huge, ID: id},
		"neither id nor ref":   {Topic: topic},
		"a huge id":            {Topic: topic, ID: huge},
		"control characters":   {Topic: topic, ID: "a\x00b"},
		"a negative partition": {Topic: topic, Ref: driver.Ref{Partition: -1, Pos: 1}},
		"a negative death":     {Topic: topic, Group: driver.DefaultGroup, ID: id, Death: -1},
		"a death of no group":  {Topic: topic, ID: id, Death: 1},
	} {
		t.finds(target, driver.ErrInvalid, "target with "+what)
	}
	for _, ref := range []driver.Ref{
		{Pos: math.MaxUint64}, {Pos: math.MaxInt64 + 1}, {Partition: math.MaxInt32, Pos: 1}, {Pos: 1, Sub: math.MaxUint64},
		{Sub: math.MaxUint64},
	} {
		t.finds(driver.Target{Topic: topic, Ref: ref}, driver.ErrNotFound, "target "+ref.String())
	}
}

// finds demands what each call that takes a target says of one.
func (t *T) finds(target driver.Target, kind error, what string) {
	t.Helper()
	_, err := t.Get(t.ctx(), target)
	t.refuses(err, kind, "Get of a "+what)
	t.refuses(t.Delete(t.ctx(), []driver.Target{target})[0], kind, "Delete of a "+what)
	t.refuses(t.Move(t.ctx(), []driver.Move{{Target: target}})[0], kind, "Move of a "+what)
}

// badMoves are refused one by one, and leave the dead letter as it is.
func badMoves(t *T) {
	s := t.consumer()
	t.group("other")
	published := t.msg("a", key("k"))
	t.publish(published)
	s.bury(s.one())
	target := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: published.ID}
	edit := func(change func(*driver.Message)) driver.Move {
		m := published.Clone()
		change(m)
		return driver.Move{Target: target, Edit: m}
	}
	for what, m := range map[string]driver.Move{
		"to a bad group":        {Target: target, To: "a b"},
		"to a huge group":       {Target: target, To: huge},
		"to its own group":      {Target: target, To: driver.DefaultGroup},
		"from no group":         {Target: driver.Target{Topic: topic, ID: published.ID}, To: "other"},
		"with a bad policy":     edit(func(m *driver.Message) { m.Retry = &driver.RetryPolicy{Factor: math.NaN()} }),
		"with a huge key":       edit(func(m *driver.Message) { m.Key = huge }),
		"with a bad priority":   edit(func(m *driver.Message) { m.Priority = -9 }),
		"with a bad header":     edit(func(m *driver.Message) { m.Headers = map[string]string{"": ""} }),
		"with endless attempts": edit(func(m *driver.Message) { m.MaxAttempts = math.MaxInt32 + 1 }),
	} {
		t.refuses(t.Move(t.ctx(), []driver.Move{m})[0], driver.ErrInvalid, "Move "+what)
	}
	large := edit(func(m *driver.Message) { m.Body = make([]byte, t.Caps.MaxBody+1) })
	t.refuses(t.Move(t.ctx(), []driver.Move{large})[0], driver.ErrTooLarge, "Move with too large a body")
	t.whole(t.deadLetter().Message, published)
	t.move(driver.Move{Target: target})
	t.whole(s.one().Message, published)
}

func badQueries(t *T) {
	t.oneLane(topic)
	t.publish(t.msgs(make([]string, 1001))...)
	good := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady}
	for what, change := range map[string]func(*driver.Query){
		"no topic":           func(q *driver.Query) { q.Topic = "" },
		"a bad topic":        func(q *driver.Query) { q.Topic = "a/b" },
		"a huge topic":       func(q *driver.Query) { q.Topic = huge },
		"no group":           func(q *driver.Query) { q.Group = "" },
		"a bad group":        func(q *driver.Query) { q.Group = "*" },
		"a huge group":       func(q *driver.Query) { q.Group = huge },
		"no state":           func(q *driver.Query) { q.State = "" },
		"an unknown state":   func(q *driver.Query) { q.State = "lost" },
		"a huge state":       func(q *driver.Query) { q.State = driver.State(huge) },
		"a negative limit":   func(q *driver.Query) { q.Limit = -1 },
		"a negative MaxScan": func(q *driver.Query) { q.MaxScan = -1 },
	} {
		q := good
		change(&q)
		_, err := t.Browse(t.ctx(), q)
		t.refuses(err, driver.ErrInvalid, "Browse with "+what)
	}
	good.Limit, good.MaxScan = math.MaxInt, math.MaxInt
	page, err := t.Browse(t.ctx(), good)
	t.ok(err, "Browse without limit")
	if len(page.Entries) != driver.MaxLimit || page.Next == "" {
		t.Errorf("a page without limit has %d entries, want %d and a cursor", len(page.Entries), driver.MaxLimit)
	}
	topicwide := driver.Query{Topic: topic, Group: "nobody", State: driver.StateDelayed}
	_, err = t.Browse(t.ctx(), topicwide)
	t.ok(err, "Browse of a state of the topic, with a group")
}

// badCursors: a cursor continues the listing that it came from, and no other.
func badCursors(t *T) {
	s := t.consumer()
	t.group("audit")
	t.put("dead1", "dead2", "dead3")
	for _, d := range s.take(3) {
		s.bury(d)
	}
	t.publish(t.msgs([]string{"r1", "r2", "r3"})...)
	t.publish(t.msgs([]string{"e1", "e2", "e3"}, to(other))...)
	t.publish(t.msgs([]string{"l1", "l2", "l3"}, delay(time.Hour))...)
	listings := []driver.Query{
		{Topic: topic, Group: driver.DefaultGroup, State: driver.StateDead},
		{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady},
		{Topic: topic, Group: "audit", State: driver.StateReady},
		{Topic: other, Group: driver.DefaultGroup, State: driver.StateReady},
		{Topic: topic, State: driver.StateDelayed},
	}
	var cursors []string
	for _, q := range listings {
		q.Limit = 1
		page, err := t.Browse(t.ctx(), q)
		t.ok(err, "Browse")
		if page.Next == "" {
			t.Fatalf("a page of one of %d entries has no cursor", 3)
		}
		cursors = append(cursors, page.Next)
	}
	for i, q := range listings {
		for n, cursor := range cursors {
			if q.Cursor = cursor; n == i {
				continue
			}
			_, err := t.Browse(t.ctx(), q)
			t.refuses(err, driver.ErrInvalid, "Browse with the cursor of another listing")
		}
		for _, junk := range []string{"x", "0", "1.", ".", "-1", "0.0", "0:0", "0.0.0.0", "tier.0.0.0",
			"99999999999999999999", "\x00", huge, cursors[i] + "0", cursors[i][1:]} {
			q.Cursor = junk
			_, err := t.Browse(t.ctx(), q)
			t.refuses(err, driver.ErrInvalid, "Browse with a cursor that is none")
		}
		q.Cursor = cursors[i]
		_, err := t.Browse(t.ctx(), q)
		t.ok(err, "Browse with its own cursor")
	}
}

// badLogCalls: the calls of a log check what they are given, like the others.
func badLogCalls(t *T) {
	l, ok := unwrapped(t.Driver).(driver.Log)
	if !ok {
		t.Skip("the driver is no log")
	}
	t.put("a")
	bad := map[string]func(name string) error{
		"Partitions": func(name string) error { _, err := l.Partitions(t.ctx(), name); return err },
		"Pending": func(name string) error {
			_, err := l.Pending(t.ctx(), driver.PendingQuery{Topic: name, Group: driver.DefaultGroup})
			return err
		},
		"Pending of the group": func(name string) error {
			_, err := l.Pending(t.ctx(), driver.PendingQuery{Topic: topic, Group: name})
			return err
		},
		"Replay": func(name string) error {
			_, err := l.Replay(t.ctx(), name, driver.DefaultGroup, driver.ReplayOptions{})
			return err
		},
		"Replay of the group": func(
			name string) error {
			_, err := l.Replay(t.ctx(), topic, name, driver.ReplayOptions{})
			return err
		},
		"Range": func(
			name string) error {
			_, err := l.Range(t.ctx(), driver.RangeQuery{Topic: name})
			return err
		},
		"Retain":    func(name string) error { return l.Retain(t.ctx(), name, driver.Retention{}) },
		"Retention": func(name string) error { _, err := l.Retention(t.ctx(), name); return err },
		"Trim":      func(name string) error { _, err := l.Trim(t.ctx(), name); return err },
	}
	for what, call := range bad {
		for _, name := range badTopicNames {
			t.refuses(call(name), driver.ErrInvalid, what+" with a bad name")
		}
	}
	for what, p := range badPositions {
		_, err := l.Replay(t.ctx(), topic, driver.DefaultGroup, driver.ReplayOptions{From: p})
		t.refuses(err, driver.ErrInvalid, "Replay from "+what)
		_, err = l.Range(t.ctx(), driver.RangeQuery{Topic: topic, To: p})
		t.refuses(err, driver.ErrInvalid, "Range to "+what)
	}
	_, err := l.Range(t.ctx(), driver.RangeQuery{Topic: topic, Partition: -1})
	t.refuses(err, driver.ErrInvalid, "Range of a negative partition")
	_, err = l.Range(t.ctx(), driver.RangeQuery{Topic: topic, Partition: math.MaxInt32})
	t.refuses(err, driver.ErrInvalid, "Range of an unknown partition")
	_, err = l.Range(t.ctx(), driver.RangeQuery{Topic: topic, Limit: -1})
	t.refuses(err, driver.ErrInvalid, "Range with a negative limit")
	for _, q := range []driver.PendingQuery{{Limit: -1}, {Cursor: "0:0-0"}, {Cursor: huge}, {Instance: huge}} {
		q.Topic, q.Group = topic, driver.DefaultGroup
		_, err := l.Pending(t.ctx(), q)
		t.refuses(err, driver.ErrInvalid, "Pending with a bad query")
	}
	t.refuses(l.Retain(t.ctx(), topic, driver.Retention{Age: -1}), driver.ErrInvalid, "Retain with a negative age")
}
