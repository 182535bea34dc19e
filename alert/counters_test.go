package alert

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/monitor"
)

// TestIncreases: what came in an hour and in a day, and what is normal, of a counter that grows by one a minute and
// then stands still.
func TestIncreases(t *testing.T) {
	t.Parallel()
	c, q, now := newCounters(), &monitor.Queue{Topic: "t", Group: "g"}, time.Unix(0, 0)
	look := func(minutes int, grows uint64) (i increase) {
		for range minutes {
			now = now.Add(time.Minute)
			q.Died += grows
			i = c.of(q, now)
		}
		return i
	}
	if i := look(90, 1); i.hour != 60 || i.day != 89 || i.normalKnown {
		t.Errorf("after 90 minutes: %+v", i)
	}
	if i := look(48*60, 1); i.hour != 60 || i.day != 24*60 || !i.normalKnown || i.normal != 60 {
		t.Errorf("after two days: %+v", i)
	}
	if i := look(2*60, 0); i.hour != 0 || i.day != 22*60 || i.normal > 60 || i.normal < 50 {
		t.Errorf("two hours after the last one: %+v", i)
	}
	if i := look(48*60, 0); i.hour != 0 || i.day != 0 || i.normal != 0 {
		t.Errorf("two days after the last one: %+v", i)
	}
	if n := len(c.died[[2]string{"t", "g"}].samples); n != 1 {
		t.Errorf("%d samples of a counter that stands still", n)
	}
	q.Died = 0 // the topic was made anew
	if i := look(2, 3); i.hour != 3 || i.day != 3 {
		t.Errorf("of a new topic: %+v", i)
	}
}
