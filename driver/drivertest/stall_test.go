package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// stalling is a harness in real time on a machine that has stalled for so long, whenever somebody asks.
func stalling(d time.Duration) Harness {
	h := memoryHarness()
	h.Virtual, h.Patience, h.stalled = false, 100*time.Millisecond, func(time.Time) time.Duration { return d }
	return h
}

// tries runs a case as Run does, and returns how often it ran and what is reported of it in the end.
func tries(t *testing.T, h Harness, spoilt *retries, f func(*T)) (int, []string) {
	n := 0
	r := &recorder{TB: t, silent: true}
	r.run(func(tb testing.TB) {
		h.resolved(tb).patiently(tb, Case{Name: "planted", Run: func(t *T) { n++; f(t) }}, spoilt)
	})
	return n, r.complaints
}

// tooLate is a case whose window is over before it looks.
func tooLate(t *T) {
	t.before(time.Now().Add(-time.Millisecond), func() { t.Fatalf("too late") })
}

// TestLostIsNeverRetried: whatever the machine did, a message that does not come is lost, also where a case decides by
// time.
func TestLostIsNeverRetried(t *testing.T) {
	t.Parallel()
	h := stalling(time.Hour)
	h = Defect{Wrap: func(d driver.Driver) driver.Driver {
		return &broken{Driver: d, publish: func(_ context.Context, _ driver.Driver, ms []*driver.Message,
			_ driver.PublishOptions) ([]driver.Receipt, error) {
			rs := make([]driver.Receipt, len(ms)) // acknowledged, and never stored
			for i, m := range ms {
				rs[i].ID = m.ID
			}
			return rs, nil
		}}
	}}.Break(h)
	for name, f := range map[string]func(*T){
		"alone":       func(t *T) { s := t.consumer(); t.put("a"); s.one() },
		"in a window": func(t *T) { s := t.consumer(); t.put("a"); t.before(time.Now(), func() { s.one() }) },
		"after a lateness": func(t *T) {
			s := t.consumer()
			t.before(time.Now().Add(-1), func() { t.Errorf("late") })
			t.put("a")
			s.one()
		},
	} {
		n, complaints := tries(t, h, new(retries), f)
		if n != 1 || len(complaints) == 0 {
			t.Errorf("%s: %d tries, complaints %q; want one try and a complaint", name, n, complaints)
		}
	}
}

// TestLatenessIsRetried: a case that a stall spoilt is tried again, so often and no more, and fails in the end.
func TestLatenessIsRetried(t *testing.T) {
	t.Parallel()
	spoilt := new(retries)
	if n, complaints := tries(t, stalling(time.Minute), spoilt, tooLate); n != 1+caseRetries || len(complaints) != 1 ||
		!strings.Contains(complaints[0], "too late") {
		t.Errorf("%d tries, complaints %q; want %d and the last one", n, complaints, 1+caseRetries)
	}
	if spoilt.done != caseRetries {
		t.Errorf("%d retries counted, want %d", spoilt.done, caseRetries)
	}
	spoilt.done = runRetries - 1
	if n, complaints := tries(t, stalling(time.Minute), spoilt, tooLate); n != 2 || len(complaints) != 1 {
		t.Errorf("%d tries, complaints %q, at the end of the run's bound; want 2", n, complaints)
	}
	runs := 0
	n, complaints := tries(t, stalling(time.Minute), new(retries), func(t *T) {
		if runs++; runs == 1 {
			tooLate(t)
		}
	})
	if n != 2 || len(complaints) != 0 {
		t.Errorf("%d tries, complaints %q; want 2 and none", n, complaints)
	}
}

// TestStallExcusesNoMoreThanItself: without a stall of that length, lateness counts at once.
func TestStallExcusesNoMoreThanItself(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*T){
		"window": func(t *T) { t.before(time.Now().Add(-2*time.Second), func() { t.Errorf("too late") }) },
		"due":    func(t *T) { t.onTime(time.Now().Add(-t.Late-2*time.Second), "a message") },
	} {
		if n, complaints := tries(t, stalling(time.Second), new(retries), f); n != 1 || len(complaints) != 1 {
			t.Errorf("%s: %d tries, complaints %q; want one of each", name, n, complaints)
		}
	}
	due := func(t *T) { t.onTime(time.Now().Add(-t.Late-2*time.Second), "a message") }
	if n, complaints := tries(t, stalling(3*time.Second), new(retries), due); n != 1 || len(complaints) != 0 {
		t.Errorf("%d tries, complaints %q of what came 2 s too late while the machine stalled for 3", n, complaints)
	}
}

// TestLeaseThatEndedMeanwhile: a settlement after the end of its lease is about time, one that is refused before it is
// not.
func TestLeaseThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	refuse := Defect{Wrap: func(d driver.Driver) driver.Driver {
		return &broken{Driver: d, settle: func(_ context.Context, _ driver.Subscription, ss []driver.Settlement) []error {
			errs := make([]error, len(ss))
			for i := range errs {
				errs[i] = driver.ErrLeaseLost
			}
			return errs
		}}
	}}.Break(stalling(time.Hour))
	refuse.Patience = 5 * time.Second
	settle := func(wait time.Duration) func(*T) {
		return func(t *T) { s := t.shortLease(); t.put("a"); d := s.one(); t.pass(wait); s.ack(d) }
	}
	if n, _ := tries(t, refuse, new(retries), settle(0)); n != 1 {
		t.Errorf("%d tries of a settlement that was refused in time, want 1", n)
	}
	if n, _ := tries(t, refuse, &retries{done: runRetries - 1}, settle(refuse.Want.MinLease+time.Millisecond)); n != 2 {
		t.Errorf("%d tries of a settlement that came too late, want 2", n)
	}
}
