package alert_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/notify"
)

// many are rules that all fire when one figure is over 1.
func many(n int) (rules []alert.Rule) {
	for i := range n {
		rules = append(rules, alert.Rule{Name: fmt.Sprintf("rule-%02d", i), When: "active_processors > 1",
			Cooldown: 12 * time.Hour})
	}
	return rules
}

// start runs a watch until the returned function is called.
func (r *rig) start(o alert.Options) (stop func()) {
	return runtest.Start(r, r.watch(o).Run)
}

// The leader is lost while notices are collected, before it noted that they are queued: each is in one digest.
func TestChangeOfLeaderWhileGrouping(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		o := alert.Options{Rules: append(many(5), leak(0, 12*time.Hour)...), Group: &notify.Digest{Window: 5 * time.Minute}}
		stop := r.start(o)
		r.set(11)
		r.k.Advance(2 * time.Minute) // longer than the broker knows ids
		stop()
		r.inbox.want(t)
		r.owe()
		stop = r.start(o)
		r.k.Advance(2 * time.Minute)
		stop()
		r.owe()
		r.k.Advance(2 * time.Minute)
		r.once(6)
		r.start(o) // the digest is sent, and nobody has noted that
		r.k.Advance(10 * time.Minute)
		r.inbox.want(t)
	})
}

// once fails the test unless one digest of n arrived that has "leak" once.
func (r *rig) once(n int) {
	r.Helper()
	body := strings.Join(r.inbox.bodies, "")
	if strings.Count(body, "leak") != 1 || strings.Count(body, "rule-") < n-1 {
		r.Errorf("%q arrived", body)
	}
	r.inbox.want(r.T, fmt.Sprintf("%d notifications", n))
}

// down is a channel that takes nothing.
func down(context.Context, notify.Rendered) (notify.Sent, error) {
	return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidTarget, Text: "no such robot"}
}

// Notices are collected for a robot that is gone, and all reach its fallback, once.
func TestGroupFallsBack(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		in := &inbox{}
		hub, err := notify.New(k.Broker, notify.Options{Channels: map[string]notify.Channel{"in": in,
			"chat": notify.Func(down)}})
		if err != nil {
			t.Fatal(err)
		}
		k.Start(hub)
		r := &rig{T: t, k: k, hub: hub, inbox: in}
		w := r.watch(alert.Options{Rules: many(20)})
		chain := notify.Target{Channel: "chat", To: "ops", Fallbacks: []notify.Target{{Channel: "in", To: "ops"}}}
		if err := w.Reload(alert.Options{Rules: many(20), Group: &notify.Digest{Window: time.Minute},
			Channels: map[string][]notify.Target{"chat": {chain}}}); err != nil {
			t.Fatal(err)
		}
		k.Start(w)
		r.set(2)
		k.Advance(2 * time.Minute)
		in.want(t, "20 notifications")
	})
}

// A silence that ends while an alert fires, in the middle of a cool-down and over a change of leader: people are told
// once, and that it is over once.
func TestSilenceEndsWhileItFires(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		o := alert.Options{Rules: leak(0, time.Hour)}
		stop := r.start(o)
		silence := func(d time.Duration) {
			t.Helper()
			if _, err := alert.AddSilence(t.Context(), r.k.Broker, alert.Silence{Subject: "system"}, d); err != nil {
				t.Fatal(err)
			}
		}
		silence(10 * time.Minute)
		r.set(11)
		r.k.Advance(5 * time.Minute)
		stop()
		r.start(o)
		r.k.Advance(6 * time.Minute)
		r.inbox.want(t, "[WARNING] leak")
		silence(90 * time.Minute) // over the first reminder
		r.k.Advance(89 * time.Minute)
		r.inbox.want(t)
		r.k.Advance(2 * time.Minute)
		r.inbox.want(t, "[WARNING] leak")
		silence(time.Hour)
		r.set(0)
		r.k.Advance(time.Minute) // who was told is told
		r.inbox.want(t, "[RESOLVED] leak")
		r.set(11)
		r.k.Advance(30 * time.Minute)
		r.set(0) // it came and went in silence
		r.k.Advance(2 * time.Hour)
		r.inbox.want(t)
	})
}

// Violations are logged: the first of a key in a row for those who look, the second as a warning, more not.
func TestViolationsAreLogged(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var lines bytes.Buffer
		w := r.watch(alert.Options{Rules: alert.Builtin(), Logger: slog.New(slog.NewTextHandler(&lines, nil))})
		hook := w.GuardHook()
		see := func(kind guard.EventKind, id string) {
			hook(t.Context(), guard.Event{Kind: kind, Name: "sender", Key: "u1", ID: id, After: time.Second})
		}
		count := func(infos, warnings int) {
			t.Helper()
			text := lines.String()
			if i, n := strings.Count(text, "level=INFO"), strings.Count(text, "level=WARN"); i != infos || n != warnings {
				t.Errorf("%d and %d lines, not %d and %d:\n%s", i, n, infos, warnings, text)
			}
		}
		see(guard.EventLimited, "m1")
		see(guard.EventLimited, "m1") // it came back
		see(guard.EventAdmitted, "m1")
		count(1, 0)
		see(guard.EventAdmitted, "m2")
		see(guard.EventLimited, "m3")
		count(2, 0)
		for i := range 5 {
			see(guard.EventLimited, fmt.Sprint("m4-", i))
		}
		count(2, 1)
	})
}

// A notice of an event says what to do.
func TestActionOfEvents(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: alert.Builtin()})
		if _, err := w.Raise(t.Context(), alert.ManyUsersBlocked, "sender", map[string]any{"users": 12.0}); err != nil {
			t.Fatal(err)
		}
		r.k.Drain()
		const want = "12 users were blocked within a minute\nSomebody must look at once: it may be an attack."
		if got := strings.Join(r.inbox.bodies, "|"); got != want {
			t.Errorf("%q arrived", got)
		}
	})
}
