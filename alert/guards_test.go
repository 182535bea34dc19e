package alert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/guard"
)

// TestBlockedUserCarriesItsMessages: the notice has as many ids as fit, and the history the last 100, the newest first,
// each once and none of another user.
func TestBlockedUserCarriesItsMessages(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: alert.Builtin()})
		r.k.Start(w)
		hook := w.GuardHook()
		id := func(i int) string { return fmt.Sprintf("01990f2e-7c00-7a00-8000-%012d", i) }
		for i := range 20_000 { // more than are remembered
			hook(t.Context(), guard.Event{Kind: guard.EventAdmitted, Name: "sender", Key: "other", ID: "other"})
			hook(t.Context(), guard.Event{Kind: guard.EventAdmitted, Name: "sender", Key: "u", ID: id(i)})
		}
		last := guard.Event{Kind: guard.EventLimited, Name: "sender", Key: "u", ID: id(20_000)}
		hook(t.Context(), last)
		hook(t.Context(), last) // it was parked, and came again
		last.Kind, last.After = guard.EventPenalized, time.Hour
		hook(t.Context(), last)
		r.k.Advance(time.Minute)

		h, err := alert.History(t.Context(), r.k.Broker, 10)
		if err != nil || len(h) == 0 {
			t.Fatal(h, err)
		}
		got := h[len(h)-1].Messages
		if len(got) != 100 || got[0] != id(20_000) || got[99] != id(19_901) || slices.Contains(got, "other") {
			t.Errorf("%d messages: %v", len(got), got)
		}
		i := slices.IndexFunc(r.inbox.bodies, func(body string) bool { return strings.Contains(body, "user u was blocked") })
		if i < 0 || !strings.Contains(r.inbox.bodies[i], id(20_000)) || !strings.Contains(r.inbox.bodies[i], " more") {
			t.Errorf("%q", r.inbox.bodies)
		}
	})
}
