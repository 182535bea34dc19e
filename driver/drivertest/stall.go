package drivertest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/stall"
)

// In real time a machine that stalls makes leases end and messages late. A case that decides by time therefore excuses
// exactly as long as the machine itself did not run (onTime, before); whatever else a case complains of counts at once.
// Only a case whose premise was over before it could look, because of a stall, is tried again. So often at most:
const (
	caseRetries = 3
	runRetries  = 20
)

// retries counts the cases of one run that were tried again.
type retries struct {
	mu   sync.Mutex
	done int
}

// take reports whether one more is allowed, and how many there were.
func (r *retries) take() (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == runRetries {
		return r.done, false
	}
	r.done++
	return r.done, true
}

// measured starts what excuses stalls in real time, until the test ends.
func (h Harness) measured(t testing.TB) Harness {
	if !h.Virtual && h.stalled == nil {
		h.stalled = stall.Watch(t).Since
	}
	return h
}

// stalledSince is how long the machine has stalled since then. In virtual time no machine does.
func (h Harness) stalledSince(then time.Time) time.Duration {
	if h.stalled == nil {
		return 0
	}
	return h.stalled(then)
}

// patiently runs one case in real time, again if all that can be said is that a stall spoilt it.
func (h Harness) patiently(tb testing.TB, c Case, spoilt *retries) {
	tb.Helper()
	for try := 0; ; try++ {
		h.try = try
		r := &recorder{TB: tb}
		r.run(func(tb testing.TB) { h.run(tb, c) })
		if len(r.complaints)+len(r.excused) == 0 {
			if r.skipped != "" {
				tb.Skip(r.skipped)
			}
			return
		}
		if len(r.complaints) == 0 && try < caseRetries {
			if n, ok := spoilt.take(); ok {
				tb.Logf("drivertest: tried again because the machine stalled, number %d of at most %d in a run: %q", n, runRetries,
					r.excused)
				continue
			}
		}
		for _, text := range append(r.complaints, r.excused...) {
			tb.Error(text)
		}
		return
	}
}

// window is a part of a case that says nothing once it is over.
type window struct{ from, to time.Time }

// before runs the part of a case that holds only until a moment: a lease, a delay or a time to live ends by itself
// then. What is complained of later is about time. A message that does not come is lost all the same: take excuses
// nothing.
func (t *T) before(end time.Time, f func()) {
	t.Helper()
	outer := t.open
	t.open = &window{time.Now(), end}
	defer func() { t.open = outer }()
	f()
}

// late complains about time: something came later than it had to. It is excused if the machine stalled that long
// meanwhile.
func (t *T) late(since time.Time, by time.Duration, text string) {
	t.Helper()
	r, recorded := t.TB.(*recorder)
	stalled := t.stalledSince(since)
	if !recorded || stalled < by {
		t.TB.Error(text)
		return
	}
	r.excuse(fmt.Sprintf("%s (stalls of the machine explain %v)", text, stalled))
}

// complain reports what is wrong, as a matter of time if a window was over.
func (t *T) complain(text string) {
	t.Helper()
	if t.open != nil {
		if by := time.Since(t.open.to); by > 0 {
			t.late(t.open.from, by, text)
			return
		}
	}
	t.TB.Error(text)
}

// Error is what a case complains with.
func (t *T) Error(args ...any) { t.Helper(); t.complain(fmt.Sprint(args...)) }

// Errorf is Error with a format.
func (t *T) Errorf(format string, args ...any) { t.Helper(); t.complain(fmt.Sprintf(format, args...)) }

// Fatalf ends the case after the complaint.
func (t *T) Fatalf(format string, args ...any) {
	t.Helper()
	t.complain(fmt.Sprintf(format, args...))
	t.end()
}

// end ends the case. With a complaint that was excused it has not failed.
func (t *T) end() {
	if r, ok := t.TB.(*recorder); ok {
		r.end()
	}
	t.TB.FailNow()
}

// leaseOver ends the case if err says that a lease was lost whose time is over by our clock too: it was used too late.
func (s *sub) leaseOver(d *driver.Delivery, err error, what string) {
	s.t.Helper()
	end := d.LeaseUntil
	if at, ok := s.extended[d]; ok {
		end = at.Add(s.lease)
	}
	if by := time.Since(end); errors.Is(err, driver.ErrLeaseLost) && by > 0 {
		s.t.late(end.Add(-s.lease), by, fmt.Sprintf("%s of %q %v after its lease ended: %v", what, d.Body, by, err))
		s.t.end()
	}
}
