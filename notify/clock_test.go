package notify

import (
	"testing"
	"time"
)

// Between two claims the backend's time goes on by what passed, wherever this machine's clock was set meanwhile.
func TestClockGoesByWhatPassed(t *testing.T) {
	start, passed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Duration(0)
	c := newClock(start)
	c.passed = func() time.Duration { return passed }
	want := func(at time.Time) {
		t.Helper()
		if got := c.now(); !got.Equal(at) {
			t.Errorf("it is %v, not %v", got, at)
		}
	}
	want(start)
	passed = time.Minute
	c.observe(start.Add(time.Hour + time.Minute)) // the backend is an hour ahead
	passed = 2 * time.Minute
	want(start.Add(time.Hour + 2*time.Minute))
	c.observe(start.Add(time.Hour)) // a claim that arrived late tells nothing
	want(start.Add(time.Hour + 2*time.Minute))
}
