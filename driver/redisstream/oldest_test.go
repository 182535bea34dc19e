package redisstream_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Nobody looks while a delay or a wait ends: whoever looks later is told since when the message is due, not since when
// that was noticed.
func TestOldestOfWhatWasNoticedLate(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	const soon, late = 10 * time.Millisecond, 300 * time.Millisecond
	check := func(what string) {
		t.Helper()
		time.Sleep(soon + late) // that it grows older is what is tested
		st, err := w.d.Stats(w.ctx(), "jobs")
		w.ok(err)
		const rounded = 5 * time.Millisecond // the server counts in milliseconds, and nothing may be early
		if got := st.Groups[0].Oldest; got < late-rounded || got > late+10*time.Second {
			t.Errorf("Oldest is %v for a %s that is due for %v", got, what, late)
		}
	}
	_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: "a", Topic: "jobs", Delay: soon}}, driver.PublishOptions{})
	w.ok(err)
	check("delayed message")
	s := w.subscribe("a", time.Hour)
	d := w.take(s, 1)[0]
	if d.Cause != driver.CauseFirst {
		t.Errorf("it came because of %s", d.Cause)
	}
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: d, Outcome: driver.Retry, After: soon}})[0])
	check("retry")
	w.settle(s, driver.Ack, w.take(s, 1)...)
	w.sound()
}
