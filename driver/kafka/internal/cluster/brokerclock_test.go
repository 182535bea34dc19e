package cluster

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestBrokerClock: however the clocks differ and however long probes take, the brokers' time is never taken for later
// than it is, nor for earlier than the fastest probe allows.
//
// Lesson: R9, L68
func TestBrokerClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		skew := time.Duration(rapid.Int64Range(-int64(72*time.Hour), int64(72*time.Hour)).Draw(r, "skew"))
		ms := rapid.SliceOfN(rapid.IntRange(0, 2000), 3, 60).Draw(r, "to, back, pause")
		complaint := ""
		synctest.Test(t, func(*testing.T) { complaint = misjudged(skew, ms) })
		if complaint != "" {
			r.Fatal(complaint)
		}
	})
}

// misjudged sends probes whose way there, way back and distance are in ms, and says when the brokers' time was taken
// for another.
func misjudged(skew time.Duration, ms []int) string {
	d := new(Cluster)
	fastest := time.Duration(1 << 62)
	for ; len(ms) >= 3; ms = ms[3:] {
		sent := time.Now()
		time.Sleep(time.Duration(ms[0]) * time.Millisecond)
		at := time.Now().Add(skew).Truncate(time.Millisecond)
		back := time.Duration(ms[1]) * time.Millisecond
		time.Sleep(back)
		d.Clock.Take(at, sent, time.Now())
		fastest = min(fastest, back+time.Millisecond)
		time.Sleep(time.Duration(ms[2]) * 5 * time.Millisecond)
		brokers := time.Now().Add(skew)
		if now := d.Now(); now.After(brokers) || brokers.Sub(now) > fastest {
			return fmt.Sprintf("it is %v at the brokers, and taken for %v, %v less; the fastest probe took %v", brokers, now,
				brokers.Sub(now), fastest)
		}
		if due := brokers.Add(time.Minute); d.Local(due).Before(time.Now().Add(time.Minute)) {
			return fmt.Sprintf("what is due in a minute is taken for due in %v", time.Until(d.Local(due)))
		}
		if ends := d.EndsAt(brokers.Add(time.Minute)); ends.Before(time.Now().Add(time.Minute-early)) ||
			ends.After(d.Local(brokers.Add(time.Minute))) {
			return fmt.Sprintf("what ends in a minute is taken for over in %v", time.Until(ends))
		}
	}
	return ""
}
