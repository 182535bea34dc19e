package driver_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFingerprintGroupsLikeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ a, b, want string }{
		{"order 42 not found", "order 1138 not found", "order # not found"},
		{"took 1.25 s", "took 30 s", "took # s"},
		{"dial tcp 10.0.0.7:443: timeout", "dial tcp 192.168.1.250:80: timeout", "dial tcp #: timeout"},
		{"dial tcp [::1]:443: refused", "dial tcp [fe80::1:2]:80: refused", "dial tcp #: refused"},
		{"user 01890a5d-ac96-774b-bcce-b302099a8057 gone", "user 5F0C1E9A-0000-4000-8000-000000000001 gone", "user # gone"},
		{"at 0xc000123ab0", "at 0x7FFE", "at #"},
		{"trace 4bf92f3577b34da6a3ce929d0e0e4736 failed", "trace ffffffffffffffffffffffffffffffff failed", "trace # failed"},
		{"session 7f3a9c ended", "session 99aabb ended", "session # ended"},
		{"plain text, no numbers", "plain text, no numbers", "plain text, no numbers"},
		{"", "", ""},
	} {
		if a, b := driver.Fingerprint(c.a), driver.Fingerprint(c.b); a != c.want || b != c.want {
			t.Errorf("%q and %q give %q and %q, want %q", c.a, c.b, a, b, c.want)
		}
	}
	if a, b := driver.Fingerprint("no such user 7"), driver.Fingerprint("no such order 7"); a == b {
		t.Errorf("different errors have one fingerprint %q", a)
	}
}

func TestFingerprintIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		once := driver.Fingerprint(text)
		if len(once) > driver.ErrorLimit || driver.Fingerprint(once) != once || strings.ContainsAny(once, "0123456789") {
			t.Fatalf("%q becomes %q", text, once)
		}
	})
	if n := len(driver.Fingerprint(strings.Repeat("x", 1<<20))); n != driver.ErrorLimit {
		t.Errorf("the fingerprint of a megabyte has %d bytes", n)
	}
}

func TestAppendFailureKeepsTheNewest(t *testing.T) {
	t.Parallel()
	var history []driver.Failure
	for attempt := 1; attempt <= driver.HistoryLimit+5; attempt++ {
		before := append([]driver.Failure(nil), history...)
		kept := history
		history = driver.AppendFailure(history, driver.Failure{Attempt: attempt})
		if d := cmp.Diff(before, append([]driver.Failure(nil), kept...)); d != "" {
			t.Fatalf("the old history changed:\n%s", d)
		}
	}
	if len(history) != driver.HistoryLimit || history[0].Attempt != 6 ||
		history[len(history)-1].Attempt != driver.HistoryLimit+5 {
		t.Errorf("history has %d entries from attempt %d to %d", len(history), history[0].Attempt,
			history[len(history)-1].Attempt)
	}
}

func TestAppendFailureClipsTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pad := rapid.IntRange(0, 3).Draw(t, "pad")
		long := strings.Repeat("x", pad) + strings.Repeat("摆", driver.StackLimit)
		f := driver.AppendFailure(nil, driver.Failure{Reason: driver.Reason(long), Error: long, Stack: long})[0]
		for _, x := range []struct {
			text  string
			limit int
		}{{string(f.Reason), driver.ErrorLimit}, {f.Error, driver.ErrorLimit}, {f.Stack, driver.StackLimit}} {
			text, limit := x.text, x.limit
			if len(text) > limit || len(text) < limit-2 || !utf8.ValidString(text) || !strings.HasPrefix(long, text) {
				t.Fatalf("clipped to %d bytes of %d, valid %v", len(text), limit, utf8.ValidString(text))
			}
		}
	})
	short := driver.AppendFailure(nil, driver.Failure{Reason: "r", Error: "e", Stack: "s"})[0]
	if short.Reason != "r" || short.Error != "e" || short.Stack != "s" {
		t.Errorf("short texts became %q, %q and %q", short.Reason, short.Error, short.Stack)
	}
}

func TestBuryFollowsTheLastFailure(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	var dl driver.DeadLetter
	dl.Bury(driver.Failure{At: at, Reason: driver.ReasonTimeout, Error: "no answer after 30 s", Stack: "main.go"})
	want := driver.DeadLetter{Reason: driver.ReasonTimeout, Error: "no answer after 30 s",
		Fingerprint: "no answer after # s",
		Stack:       "main.go", Recoverable: true, Action: driver.ActionDelayedRetry, DiedAt: at}
	if d := cmp.Diff(want, dl); d != "" {
		t.Error(d)
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for reason, want := range map[driver.Reason]struct {
		recoverable bool
		action      driver.Action
	}{
		driver.ReasonMaxAttempts:   {true, driver.ActionDelayedRetry},
		driver.ReasonRateLimited:   {true, driver.ActionAutoRetry},
		driver.ReasonMaxDeliveries: {false, driver.ActionEscalate},
		driver.ReasonExpired:       {false, driver.ActionDiscard},
		driver.ReasonKeyBlocked:    {true, driver.ActionAutoRetry},
		driver.ReasonPanic:         {true, driver.ActionDelayedRetry},
		"the user's own":           {false, driver.ActionManualReview},
	} {
		if r, a := reason.Advice(); r != want.recoverable || a != want.action {
			t.Errorf("%s: %v, %s; want %v, %s", reason, r, a, want.recoverable, want.action)
		}
	}
}
