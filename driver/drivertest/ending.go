package drivertest

import (
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// endingCase is the name of the case below.
const endingCase = "inspect/done tells how it ended"

// ended is how a message was settled.
type ended struct {
	By   string
	Took time.Duration
}

// doneTellsHowItEnded: when a kept message was settled, by whom and how long that took, for each group.
func doneTellsHowItEnded(t *T) {
	if t.Caps.History == driver.HistoryNone {
		t.Skip("no history")
	}
	t.configure(topic, driver.TopicConfig{Keep: time.Hour})
	for _, g := range []string{"audit", "billing"} {
		t.ok(t.EnsureGroup(t.ctx(), topic, g, driver.GroupOptions{}), "EnsureGroup")
	}
	a := t.subscribe(driver.SubscribeOptions{Group: "audit", Instance: "host 1"})
	b := t.subscribe(driver.SubscribeOptions{Group: "billing", Instance: "host-2"})
	t.put("acked", "dropped", "tried again")
	ds := a.expect("acked", "dropped", "tried again")
	a.settle(driver.Settlement{Delivery: ds[0], Outcome: driver.Ack, Took: 3 * time.Millisecond},
		driver.Settlement{Delivery: ds[1], Outcome: driver.Drop, Took: 4*time.Millisecond + 5})
	a.retry(ds[2], 0)
	a.settle(driver.Settlement{Delivery: a.one(), Outcome: driver.Ack, Took: time.Hour})
	claimed := time.Time{}
	for _, d := range b.take(3) {
		claimed = d.ClaimedAt
		b.settle(driver.Settlement{Delivery: d, Outcome: driver.Ack, Took: -1})
	}
	if !t.Caps.Endings {
		t.unknownEnding(ds[0])
		return
	}
	t.endings("audit", map[string]ended{"acked": {"host 1", 3 * time.Millisecond},
		"dropped": {"host 1", 4*time.Millisecond + 5}, "tried again": {"host 1", time.Hour}})
	t.endings("billing", map[string]ended{"acked": {"host-2", 0}, "dropped": {"host-2", 0}, "tried again": {"host-2", 0}})
	e := t.get(driver.Target{Topic: topic, Group: "billing", ID: ds[0].ID})
	if now := t.get(driver.Target{Topic: topic, Group: "billing", ID: ds[2].ID}).SettledAt; now.Before(claimed) ||
		now.Sub(e.SettledAt) > t.Patience {
		t.Errorf("claimed at %v, settled at %v, another one at %v", claimed, now, e.SettledAt)
	}
	a.leave()
	_, err := t.Reset(t.ctx(), topic, "audit", driver.ResetOptions{To: driver.Position{From: driver.FromBegin}})
	t.ok(err, "Reset")
	again := t.get(driver.Target{Topic: topic, Group: "audit", ID: ds[0].ID})
	t.equal([]any{again.State, again.SettledAt.IsZero(), again.Took, again.Instance},
		[]any{driver.StateReady, true, time.Duration(0), ""}, "state, time, duration and holder of what is delivered again")
	c := t.subscribe(driver.SubscribeOptions{Group: "audit", Instance: "host-3"})
	for _, d := range c.take(3) {
		c.settle(driver.Settlement{Delivery: d, Outcome: driver.Ack, Took: time.Minute})
	}
	want := map[string]ended{"acked": {"host-3", time.Minute}, "dropped": {"host-3", time.Minute},
		"tried again": {"host-3", time.Minute}}
	t.endings("audit", want)
	if t.Reopen != nil {
		t.restart()
		t.endings("audit", want)
	}
}

// endings compares what Browse and Get tell of all that is done in a group.
func (t *T) endings(group string, want map[string]ended) {
	t.Helper()
	got := map[string]ended{}
	for _, e := range t.browseGroup(group, driver.StateDone) {
		got[string(e.Body)] = ended{e.Instance, e.Took}
		one := t.get(driver.Target{Topic: topic, Group: group, ID: e.ID})
		t.equal([]any{one.Instance, one.Took}, []any{e.Instance, e.Took}, "ending by Get")
		if one.SettledAt.Sub(e.SettledAt).Abs() > time.Millisecond || time.Since(e.SettledAt).Abs() > time.Minute &&
			!t.Virtual {
			t.Errorf("%q was settled at %v by Browse, at %v by Get", e.Body, e.SettledAt, one.SettledAt)
		}
	}
	t.equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), "done in group "+group)
	for body, w := range want {
		t.equal(got[body], w, "ending of "+body+" in group "+group)
	}
}

// unknownEnding demands that a driver that keeps no endings invents none.
func (t *T) unknownEnding(d *driver.Delivery) {
	t.Helper()
	e := t.get(driver.Target{Topic: topic, Group: d.Group, ID: d.ID})
	t.equal([]any{e.State, e.SettledAt.IsZero(), e.Took, e.Instance}, []any{driver.StateDone, true, time.Duration(0), ""},
		"state, time, duration and instance of what is done")
}
