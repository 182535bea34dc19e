package guard

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestResultsOfAnEarlierTermSayNothing: what began before a breaker opened does not close it again, nor does it open
// one that has closed since; neither what began before the interval of a ratio ended.
func TestResultsOfAnEarlierTermSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBreaker(BreakerOptions{Name: "down", Failures: 2, Open: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := b.only
		before := []term{enter(t, c), enter(t, c)}
		for range 2 {
			c.leave(enter(t, c), failed)
		}
		if now, wait := c.enter(); now != refused || wait != 10*time.Second+time.Millisecond {
			t.Fatalf("it lets pass, or waits %v", wait)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		probe := enter(t, c)
		if now, wait := c.enter(); now != refused || wait != time.Second {
			t.Errorf("a second probe, or it waits %v", wait)
		}
		c.leave(before[0], succeeded)
		if c.state != StateHalfOpen {
			t.Errorf("a success from before closed it: %s", c.state)
		}
		c.leave(probe, uncounted)
		c.leave(enter(t, c), succeeded)
		c.leave(before[1], failed)
		if n := c.counts; c.state != StateClosed || n.failuresInARow != 0 {
			t.Errorf("%s, %+v", c.state, n)
		}
	})
}

// TestARatioBeginsAnew: after its interval.
func TestARatioBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBreaker(BreakerOptions{Name: "down", Failures: 100, Ratio: 0.5, MinRequests: 4, Interval: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c := b.only
		early := enter(t, c)
		for range 3 {
			c.leave(enter(t, c), failed)
		}
		time.Sleep(time.Minute + 1)
		c.leave(early, failed)
		if c.state != StateClosed || c.counts != (counts{}) {
			t.Errorf("%s, %+v", c.state, c.counts)
		}
		for _, r := range []result{succeeded, succeeded, failed, failed} {
			c.leave(enter(t, c), r)
		}
		if c.state != StateOpen {
			t.Errorf("half of four failed, and it is %s", c.state)
		}
	})
}

func enter(t *testing.T, c *circuit) term {
	t.Helper()
	in, wait := c.enter()
	if in == refused {
		t.Fatalf("refused for %v by one that is %s", wait, c.state)
	}
	return in
}
