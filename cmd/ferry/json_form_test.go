package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/operation"
)

// Whatever a command prints as JSON, its durations are texts and its times have one form.
func TestTimesAndDurationsInJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 8, 0, 0, 123_456_789, time.FixedZone("there", 8*3600))
	const form = `"2026-01-31T00:00:00.123Z"`
	rule := guard.Rule{Limit: 5, Window: 10 * time.Second, Penalty: guard.Penalty{After: 3, Block: time.Hour}}
	for name, c := range map[string]struct {
		v    any
		want []string
	}{
		"operation": {viewOperation(operation.Operation{ID: "J", Args: []byte(`{"after":"1m0s"}`), Submitted: at, Ended: at}),
			[]string{`"operation":"J"`, `"after":"1m0s"`, `"submitted":` + form, `"ended":` + form}},
		"change": {guard.Change{At: at, Actor: "ann", For: time.Hour, Rule: rule},
			[]string{`"actor":"ann"`, `"at":` + form, `"for":"1h0m0s"`, `"window":"10s"`, `"block":"1h0m0s"`, `"limit":5`}},
		"rule": {guard.SharedRule{Limit: "user", Rule: rule, At: at},
			[]string{`"limit":"user"`, `"at":` + form, `"window":"10s"`}},
		"breaker": {guard.BreakerStatus{Name: "b", Since: at, Seen: at},
			[]string{`"name":"b"`, `"since":` + form, `"seen":` + form}},
		"status": {guard.Status{Key: "k", Rule: rule, Override: &guard.Override{Rule: rule, Until: at},
			Block: &guard.Block{Until: at}},
			[]string{`"key":"k"`, `"until":` + form, `"window":"10s"`}},
		"topic": {viewTopic(driver.TopicStats{Groups: []driver.GroupStats{{Oldest: 1500 * time.Millisecond}}}),
			[]string{`"oldest":"1.5s"`}},
		"config": {viewConfig(driver.TopicConfig{Keep: time.Hour, MaxMessages: 3}),
			[]string{`"keep":"1h0m0s"`, `"max_messages":3`}},
	} {
		b, err := encodeJSON(c.v, "", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s: %s is missing in %s", name, want, b)
			}
		}
		for _, bad := range []string{"000000000", "456789", "+08:00"} {
			if strings.Contains(string(b), bad) {
				t.Errorf("%s has %s: %s", name, bad, b)
			}
		}
	}
}
