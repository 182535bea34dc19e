package alert_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
)

// A leader that is lost after it queued a notice, and before it noted that: who was told that it fires is told by the
// next leader that it is over, and of the rest nothing twice.
func TestNoticeOwedByALostLeader(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		kill := r.start(alert.Options{Rules: leak(0, time.Hour)})
		r.set(11)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		kill()
		r.owe()
		r.set(0)
		r.k.Start(r.watch(alert.Options{Rules: leak(0, time.Hour)}))
		r.k.Advance(time.Minute)
		r.inbox.want(t, "[RESOLVED] leak")
	})
}

// owe takes back what a leader noted of the notice that it had queued.
func (r *rig) owe() {
	r.Helper()
	a, err := alert.Get(r.Context(), r.k.Broker, "leak", "system")
	if err != nil {
		r.Fatal(err)
	}
	a.Owed, a.Notices, a.Notified = alert.Firing, 0, time.Time{}
	data, err := json.Marshal(a)
	if err != nil {
		r.Fatal(err)
	}
	w := driver.Write{Name: "state/leak/system", Data: data}
	if err := r.k.Broker.Driver().KV().Apply(r.Context(), cluster.LeadBucket(alert.Duty), driver.KVOptions{},
		w)[0].Err; err != nil {
		r.Fatal(err)
	}
}

// A cool-down begins with the notice, not with the hour.
func TestEventsWithinACooldown(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: []alert.Rule{{Name: "E", Cooldown: 3 * time.Hour, Text: "{who}"}}})
		raise := func(told bool) {
			t.Helper()
			got, err := w.Raise(t.Context(), "E", "s", map[string]any{"who": "li"})
			if got != told || err != nil {
				t.Errorf("told: %v, %v", got, err)
			}
		}
		r.k.Advance(179 * time.Minute) // since midnight: the cool-down's own clock would begin anew in a minute
		raise(true)
		for range 5 {
			r.k.Advance(35 * time.Minute) // in all longer than receipts are kept by default
			raise(false)
		}
		r.k.Advance(6 * time.Minute)
		raise(true)
	})
}

// A notice that the hub would refuse would tell nobody: a text that is too long is cut.
func TestLongTexts(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		long := leak(0, time.Hour)
		long[0].Action = strings.Repeat("长", notify.MaxBody)
		w := r.watch(alert.Options{Rules: append(long, alert.Rule{Name: "E", Text: "{what}"})})
		r.k.Start(w)
		r.set(11)
		r.k.Advance(20 * time.Second)
		if _, err := w.Raise(t.Context(), "E", "s", map[string]any{"what": strings.Repeat("x", 5000) + "\xff"}); err != nil {
			t.Error(err)
		}
		r.k.Advance(time.Second)
		for _, body := range r.inbox.bodies {
			if utf8.RuneCountInString(body) != notify.MaxBody || !strings.HasSuffix(body, "…") {
				t.Errorf("%d characters arrived", utf8.RuneCountInString(body))
			}
		}
		r.inbox.want(t, "[WARNING] leak", "[WARNING] E")
	})
}

// One target that the hub refuses would keep the notices from all others: it is refused before anything is watched.
func TestWrongTargets(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		collector, err := monitor.NewCollector(r.k.Broker, monitor.CollectorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		good, wrong := notify.Target{Channel: "in", To: "ops"}, notify.Target{Channel: "none", To: "ops"}
		chain := notify.Target{Channel: "in", To: "a", Fallbacks: []notify.Target{good}}
		deep := notify.Target{Channel: "in", To: "b", Fallbacks: []notify.Target{chain}}
		for name, o := range map[string]alert.Options{
			"unknown channel":   {Channels: map[string][]notify.Target{"a": {good, wrong}}},
			"unknown heartbeat": {Heartbeat: alert.Heartbeat{Targets: []notify.Target{wrong}}},
			"fallback of one":   {Channels: map[string][]notify.Target{"a": {deep}}},
			"size of a group":   {Group: &notify.Digest{Count: 1000}},
		} {
			o.Hub, o.Collector, o.Rules = r.hub, collector, leak(0, 0)
			if o.Channels == nil {
				o.Channels = map[string][]notify.Target{"a": {good}}
			}
			if _, err := alert.New(r.k.Broker, o); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestRemoveSilence(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		id, err := alert.AddSilence(t.Context(), r.k.Broker, alert.Silence{}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := alert.RemoveSilence(t.Context(), r.k.Broker, id); err != nil {
			t.Error(err)
		}
		for _, gone := range []string{id, "none", ""} {
			if err := alert.RemoveSilence(t.Context(), r.k.Broker, gone); !errors.Is(err, ferry.ErrNotFound) {
				t.Errorf("%q: %v", gone, err)
			}
		}
	})
}
