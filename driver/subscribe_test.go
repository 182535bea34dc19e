package driver_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var caps = driver.Capabilities{Driver: "test", MinLease: time.Second, DefaultLease: 10 * time.Second,
	History: driver.HistoryNone}

func TestResolveFillsInDefaults(t *testing.T) {
	t.Parallel()
	got, err := driver.SubscribeOptions{Topic: "orders", Instance: "host-1"}.Resolve(caps)
	want := driver.SubscribeOptions{Topic: "orders", Instance: "host-1", Group: driver.DefaultGroup,
		Lease:  10 * time.Second,
		MaxRun: driver.DefaultMaxRun, MaxInflight: driver.DefaultMaxInflight, Weights: driver.DefaultWeights}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	set := driver.SubscribeOptions{Topic: "orders", Instance: "host-1", Group: "g", Lease: time.Second,
		MaxRun: 5, MaxInflight: 6,
		Weights: [4]int{1, 1, 1, 1}, Order: driver.Relaxed, StrictPriority: true}
	if got, err := set.Resolve(caps); err != nil || cmp.Diff(set, got) != "" {
		t.Errorf("what was set changed, or was refused: %v\n%s", err, cmp.Diff(set, got))
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*driver.SubscribeOptions)
		kind   error
		says   string
	}{
		{"topic", func(o *driver.SubscribeOptions) { o.Topic = "" }, driver.ErrInvalid, "topic name"},
		{"group", func(o *driver.SubscribeOptions) { o.Group = "a b" }, driver.ErrInvalid, "group name"},
		{"no instance", func(o *driver.SubscribeOptions) { o.Instance = "" }, driver.ErrInvalid, "instance has no name"},
		{"hostile instance", func(o *driver.SubscribeOptions) { o.Instance = "a\x1b" }, driver.ErrInvalid, "instance name"},
		{"long instance", func(o *driver.SubscribeOptions) {
			o.Instance = strings.Repeat("i", 129)
		}, driver.ErrInvalid, "instance name of 129"},
		{"short lease", func(o *driver.SubscribeOptions) {
			o.Lease = time.Second - 1
		}, driver.ErrUnsupported, "too short for test"},
		{"negative lease", func(o *driver.SubscribeOptions) { o.Lease = -1 }, driver.ErrUnsupported, "too short for test"},
		{"negative run", func(o *driver.SubscribeOptions) { o.MaxRun = -1 }, driver.ErrInvalid, "MaxRun or MaxInflight"},
		{"negative in flight", func(o *driver.SubscribeOptions) {
			o.MaxInflight = -1
		}, driver.ErrInvalid, "MaxRun or MaxInflight"},
		{"order", func(o *driver.SubscribeOptions) {
			o.Order = driver.Relaxed + 1
		}, driver.ErrInvalid, "order 2 does not exist"},
		{"history", func(o *driver.SubscribeOptions) {
			o.Start.From = driver.FromBegin
		}, driver.ErrUnsupported, "test keeps no history"},
		{"endless weight", func(o *driver.SubscribeOptions) {
			o.Weights = [4]int{1, 1, 1, driver.MaxWeight + 1}
		}, driver.ErrInvalid, "more than 10000"},
		{"one weight left out", func(o *driver.SubscribeOptions) {
			o.Weights = [4]int{1, 0, 1, 1}
		}, driver.ErrInvalid, "less than 1"},
	} {
		o := driver.SubscribeOptions{Topic: "orders", Instance: "host-1"}
		c.change(&o)
		_, err := o.Resolve(caps)
		wantError(t, c.name, err, c.kind, c.says)
	}
	kept := caps
	kept.History = driver.HistoryKept
	o := driver.SubscribeOptions{Topic: "orders", Instance: "host-1", Start: driver.Position{From: driver.FromBegin}}
	if _, err := o.Resolve(kept); err != nil {
		t.Errorf("a start at the beginning, where history is kept: %v", err)
	}
}

func TestEmitIDs(t *testing.T) {
	t.Parallel()
	uuid8 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	type source struct {
		parent string
		index  int
	}
	seen := make(map[string]source)
	rapid.Check(t, func(t *rapid.T) {
		from := source{rapid.OneOf(rapid.String(), rapid.StringMatching(`a(/[0-9]){0,3}`)).Draw(t, "parent"),
			rapid.IntRange(0, 100).Draw(t, "index")}
		id := driver.EmitID(from.parent, from.index)
		if !uuid8.MatchString(id) {
			t.Fatalf("%q is not a UUID of version 8", id)
		}
		if other, ok := seen[id]; ok && other != from {
			t.Fatalf("%+v and %+v share the id %s", from, other, id)
		}
		seen[id] = from
	})
	const first = "d7e98967-056f-8828-8b38-8a7930d88594"
	if got := driver.EmitID("a", 0); got != first {
		t.Errorf("the id of the first follow-up of a is %s, was %s: a repeat over an upgrade would not be recognised",
			got, first)
	}
}
