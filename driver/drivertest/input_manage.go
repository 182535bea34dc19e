package drivertest

import (
	"math"
	"time"

	"github.com/ferrymq/ferry/driver"
)

var badTopicNames = []string{"", "a b", "{tag}", "../x", "a/b", "摆渡", "a\n", huge}

// badNames are refused by every call that takes a name.
func badNames(t *T) {
	t.oneLane(topic)
	for _, name := range badTopicNames {
		for what, err := range t.callsOfTopic(name) {
			t.refuses(err, driver.ErrInvalid, what+" of a topic with a bad name")
		}
		for what, err := range t.callsOfGroup(name) {
			t.refuses(err, driver.ErrInvalid, what+" of a group with a bad name")
		}
	}
	t.onlyTopics(topic)
}

func (t *T) callsOfTopic(name string) map[string]error {
	calls := map[string]error{
		"EnsureTopic": t.EnsureTopic(t.ctx(), name, driver.TopicConfig{}),
		"AlterTopic":  t.AlterTopic(t.ctx(), name, driver.TopicConfig{}),
		"DeleteTopic": t.DeleteTopic(t.ctx(), name),
		"EnsureGroup": t.EnsureGroup(t.ctx(), name, "g", driver.GroupOptions{}),
		"DeleteGroup": t.DeleteGroup(t.ctx(), name, "g"),
		"Pause":       t.Pause(t.ctx(), name, "", true),
	}
	_, calls["Purge"] = t.Purge(t.ctx(), name, "")
	_, calls["Reset"] = t.Reset(t.ctx(), name, "g", driver.ResetOptions{})
	_, calls["Stats"] = t.Stats(t.ctx(), name)
	_, calls["Audit"] = t.Audit(t.ctx(), name, false)
	_, calls["Subscribe"] = t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: name, Instance: "tester"})
	return calls
}

// callsOfGroup leaves out what an empty name means something to.
func (t *T) callsOfGroup(name string) map[string]error {
	calls := map[string]error{
		"EnsureGroup": t.EnsureGroup(t.ctx(), topic, name, driver.GroupOptions{}),
		"DeleteGroup": t.DeleteGroup(t.ctx(), topic, name),
	}
	_, calls["Reset"] = t.Reset(t.ctx(), topic, name, driver.ResetOptions{})
	if name != "" {
		calls["Pause"] = t.Pause(t.ctx(), topic, name, true)
		_, calls["Purge"] = t.Purge(t.ctx(), topic, name)
		_, calls["Subscribe"] = t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Group: name, Instance: "tester"})
	}
	return calls
}

func badConfigurations(t *T) {
	t.oneLane(topic)
	for what, c := range map[string]driver.TopicConfig{
		"negative MaxMessages":  {MaxMessages: -1},
		"negative MaxBytes":     {MaxBytes: -1},
		"negative Keep":         {Keep: -1},
		"negative KeepMost":     {KeepMost: -1},
		"negative Partitions":   {Partitions: -1},
		"KeepMost without Keep": {KeepMost: 1},
		"endless Partitions":    {Partitions: math.MaxInt},
	} {
		t.refuses(t.EnsureTopic(t.ctx(), other, c), driver.ErrInvalid, "EnsureTopic with "+what)
		t.refuses(t.AlterTopic(t.ctx(), topic, c), driver.ErrInvalid, "AlterTopic with "+what)
	}
	t.onlyTopics(topic)
	endless := driver.TopicConfig{MaxMessages: math.MaxInt64, MaxBytes: math.MaxInt64, Partitions: 3}
	if t.Caps.History != driver.HistoryNone {
		endless.Keep = math.MaxInt64
	}
	t.ok(t.EnsureTopic(t.ctx(), other, endless), "EnsureTopic with bounds that nobody reaches")
	s := t.subscribe(driver.SubscribeOptions{Topic: other})
	t.publish(t.msg("a", to(other)))
	s.ack(s.expect("a")...)
}

// badPositions are places that cannot exist.
var badPositions = map[string]driver.Position{
	"an unknown kind":      {From: driver.FromRef + 1},
	"no time":              {From: driver.FromTime},
	"no message":           {From: driver.FromRef},
	"a negative partition": {From: driver.FromRef, Ref: driver.Ref{Partition: -1, Pos: 1}},
}

func badGroupOptions(t *T) {
	t.oneLane(topic)
	t.refuses(t.EnsureGroup(t.ctx(), topic, "new", driver.GroupOptions{Order: 7}), driver.ErrInvalid,
		"EnsureGroup with an unknown order")
	t.group(driver.DefaultGroup)
	for what, p := range badPositions {
		t.refuses(t.EnsureGroup(t.ctx(), topic, "new", driver.GroupOptions{Start: p}), driver.ErrInvalid,
			"EnsureGroup from "+what)
		_, err := t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Group: "new", Instance: "tester", Start: p})
		t.refuses(err, driver.ErrInvalid, "Subscribe from "+what)
		_, err = t.Reset(t.ctx(), topic, driver.DefaultGroup, driver.ResetOptions{To: p})
		t.refuses(err, driver.ErrInvalid, "Reset to "+what)
	}
	for _, g := range t.stats(topic).Groups {
		t.equal(g.Group, driver.DefaultGroup, "group after refused calls")
	}
}

// badSubscribeOptions are refused before anything is made.
func badSubscribeOptions(t *T) {
	for what, change := range map[string]func(*driver.SubscribeOptions){
		"no instance":          func(o *driver.SubscribeOptions) { o.Instance = "" },
		"control characters":   func(o *driver.SubscribeOptions) { o.Instance = "a\nb" },
		"a huge instance":      func(o *driver.SubscribeOptions) { o.Instance = huge },
		"negative MaxRun":      func(o *driver.SubscribeOptions) { o.MaxRun = -1 },
		"negative MaxInflight": func(o *driver.SubscribeOptions) { o.MaxInflight = -1 },
		"unknown order":        func(o *driver.SubscribeOptions) { o.Order = 9 },
		"zero weight":          func(o *driver.SubscribeOptions) { o.Weights = [4]int{1, 0, 1, 1} },
		"endless weight":       func(o *driver.SubscribeOptions) { o.Weights = [4]int{1, 1, 1, math.MaxInt} },
	} {
		o := driver.SubscribeOptions{Topic: topic, Instance: "tester", Lease: longLease}
		change(&o)
		_, err := t.Subscribe(t.ctx(), o)
		t.refuses(err, driver.ErrInvalid, "Subscribe with "+what)
	}
	for _, lease := range []time.Duration{-1, t.Caps.MinLease - 1} {
		_, err := t.Subscribe(t.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "tester", Lease: lease})
		t.refuses(err, driver.ErrUnsupported, "Subscribe with too short a lease")
	}
	t.onlyTopics()
}
