package alert_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// TestRulesKeptInTheBroker: a rule that is put counts from the next look on, over one of the options of its name, and
// that one counts again when it is removed.
func TestRulesKeptInTheBroker(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: leak(0, time.Minute)})
		r.k.Start(w)
		r.set(11)
		own := leak(0, time.Minute)[0]
		own.Threshold, own.Severity = 100, alert.Critical
		if err := w.PutRule(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		r.k.Advance(time.Minute)
		r.inbox.want(t)
		r.set(101)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[CRITICAL] leak")
		found, err := w.Rules(t.Context())
		if err != nil || len(found) != 1 || !found[0].Kept || found[0].Threshold != 100 {
			t.Errorf("%+v, %v", found, err)
		}
		r.set(0)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[RESOLVED] leak")
		if err := w.DeleteRule(t.Context(), "leak"); err != nil {
			t.Fatal(err)
		}
		r.set(11)
		r.k.Advance(2 * time.Minute)
		r.inbox.want(t, "[WARNING] leak", "[WARNING] leak")
		if err := w.DeleteRule(t.Context(), "leak"); !isNotFound(err) {
			t.Errorf("a rule of the options was deleted: %v", err)
		}
	})
}

// wantOver demands that a rule that fired is over for a reason that the notice tells, and that nothing is known of it.
func wantOver(t *testing.T, r *rig, reason string) {
	t.Helper()
	r.k.Advance(10 * time.Second)
	if got := r.inbox.bodies; len(got) != 1 || !strings.HasPrefix(got[0], "system: "+reason+" after ") {
		t.Errorf("%q arrived", got)
	}
	r.inbox.want(t, "[RESOLVED] leak")
	r.k.Advance(10 * time.Minute)
	r.inbox.want(t)
}

// TestFiringRuleIsDeleted: who was told is told that the rule was removed, and nothing is known of it any more.
func TestFiringRuleIsDeleted(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{})
		r.k.Start(w)
		rule := leak(0, time.Minute)[0]
		rule.Channels = []string{"email"}
		if err := w.PutRule(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
		r.set(11)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		if err := alert.Acknowledge(t.Context(), r.k.Broker, "leak", "system", "li"); err != nil {
			t.Fatal(err)
		}
		if err := w.DeleteRule(t.Context(), "leak"); err != nil {
			t.Fatal(err)
		}
		wantOver(t, r, "the rule was removed")
		if found, err := alert.List(t.Context(), r.k.Broker); err != nil || len(found) != 0 {
			t.Errorf("%+v, %v", found, err)
		}
		if err := w.PutRule(t.Context(), rule); err != nil { // it begins anew: no cool-down, nobody takes care
			t.Fatal(err)
		}
		r.k.Advance(70 * time.Second)
		r.inbox.want(t, "[WARNING] leak", "[WARNING] leak")
	})
}

// TestReload: rules, channels and silences of other options count from the next look on, and what is wrong changes
// nothing.
func TestReload(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		o := alert.Options{Rules: leak(0, time.Minute), Channels: map[string][]notify.Target{"a": {{Channel: "in", To: "a"}}}}
		w := r.watch(o)
		r.k.Start(w)
		r.set(11)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		for name, wrong := range map[string]alert.Options{
			"a rule":      {Rules: []alert.Rule{{Name: "leak", When: "leaks > 1"}}, Channels: o.Channels},
			"no channels": {Rules: o.Rules},
			"a silence":   {Rules: o.Rules, Channels: o.Channels, Silences: []alert.Silence{{Rule: "["}}},
		} {
			if err := w.Reload(wrong); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.k.Advance(time.Minute)
		r.inbox.want(t, "[WARNING] leak")
		reload := func(o alert.Options) {
			t.Helper()
			if err := w.Reload(o); err != nil {
				t.Fatal(err)
			}
		}
		o.Silences = []alert.Silence{{Rule: "leak"}}
		reload(o)
		r.k.Advance(2 * time.Minute)
		r.inbox.want(t)
		o.Rules, o.Silences = leak(0, time.Minute), nil
		o.Rules[0].Disabled = true
		reload(o)
		wantOver(t, r, "the rule was disabled")
		o.Rules[0].Disabled, o.Rules[0].Severity = false, alert.Critical
		reload(o)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[CRITICAL] leak")
		reload(alert.Options{Channels: o.Channels})
		wantOver(t, r, "the rule was removed")
	})
}

func isNotFound(err error) bool { return errors.Is(err, ferry.ErrNotFound) }

// TestWrongRulesAreNotKept: what cannot be evaluated is refused, and harms nothing if it is there all the same.
func TestWrongRulesAreNotKept(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: leak(0, time.Minute)})
		r.k.Start(w)
		for name, wrong := range map[string]alert.Rule{
			"a condition": {Name: "a", When: "queue_dept > 1"},
			"a name":      {Name: "a/b", When: "ready > 1"},
			"a channel":   {Name: "a", When: "ready > 1", Channels: []string{"none"}},
		} {
			if err := w.PutRule(t.Context(), wrong); err == nil {
				t.Errorf("%s was kept", name)
			}
		}
		put := driver.Write{Name: "rule/broken", Data: []byte("{")}
		kv := r.k.Broker.Driver().KV()
		if res := kv.Apply(t.Context(), cluster.LeadBucket(alert.Duty), driver.KVOptions{}, put); res[0].Err != nil {
			t.Fatal(res[0].Err)
		}
		r.set(11)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
	})
}

// TestSilencesOfTheOptions hold until their time, or always, and are listed.
func TestSilencesOfTheOptions(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: leak(0, time.Minute), Silences: []alert.Silence{
			{Rule: "other"}, {Rule: "le*", Until: time.Now().Add(5 * time.Minute)}}})
		r.k.Start(w)
		r.set(11)
		r.k.Advance(4 * time.Minute)
		r.inbox.want(t)
		if found, err := w.Silences(t.Context()); err != nil || len(found) != 2 {
			t.Errorf("%+v, %v", found, err)
		}
		r.k.Advance(90 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		if found, err := w.Silences(t.Context()); err != nil || len(found) != 1 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestHistoryOfWhatFlaps: an alert that comes and goes is in the history once in a cool-down.
func TestHistoryOfWhatFlaps(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.k.Start(r.watch(alert.Options{Rules: leak(0, 10*time.Minute)}))
		for range 60 { // it fires for 10 s every 20 s, for 20 minutes
			r.set(11)
			r.k.Advance(10 * time.Second)
			r.set(0)
			r.k.Advance(10 * time.Second)
		}
		h, err := alert.History(t.Context(), r.k.Broker, 100)
		if err != nil || len(h) < 4 || len(h) > 6 {
			t.Errorf("%d entries, %v: %+v", len(h), err, h)
		}
	})
}

// TestTestMessage: a rule can be tried by who has no watch.
func TestTestMessage(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: leak(0, time.Minute)})
		h, err := w.Test(t.Context(), "leak")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		r.inbox.want(t, "[TEST] leak")
		if _, err := w.Test(t.Context(), "none"); !isNotFound(err) {
			t.Error(err)
		}
		if _, err := alert.TestMessage(leak(0, 0), nil, "none"); !isNotFound(err) {
			t.Error(err)
		}
	})
}
