package kafka

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
)

// TestBrokerClock: however the clocks differ and however long probes take, the brokers' time is never taken for later than it is, nor for
// earlier than the fastest probe allows.
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

// misjudged sends probes whose way there, way back and distance are in ms, and says when the brokers' time was taken for another.
func misjudged(skew time.Duration, ms []int) string {
	d := &Driver{clock: brokerClock{probes: map[string]chan time.Time{}}}
	fastest := time.Duration(1 << 62)
	for ; len(ms) >= 3; ms = ms[3:] {
		sent := time.Now()
		time.Sleep(time.Duration(ms[0]) * time.Millisecond)
		at := time.Now().Add(skew).Truncate(time.Millisecond)
		back := time.Duration(ms[1]) * time.Millisecond
		time.Sleep(back)
		d.clock.take(at, sent, time.Now())
		fastest = min(fastest, back+time.Millisecond)
		time.Sleep(time.Duration(ms[2]) * 5 * time.Millisecond)
		brokers := time.Now().Add(skew)
		if now := d.now(); now.After(brokers) || brokers.Sub(now) > fastest {
			return fmt.Sprintf("it is %v at the brokers, and taken for %v, %v less; the fastest probe took %v", brokers, now, brokers.Sub(now), fastest)
		}
		if due := brokers.Add(time.Minute); d.local(due).Before(time.Now().Add(time.Minute)) {
			return fmt.Sprintf("what is due in a minute is taken for due in %v", time.Until(d.local(due)))
		}
		if ends := d.endsAt(brokers.Add(time.Minute)); ends.Before(time.Now().Add(time.Minute-early)) || ends.After(d.local(brokers.Add(time.Minute))) {
			return fmt.Sprintf("what ends in a minute is taken for over in %v", time.Until(ends))
		}
	}
	return ""
}

// TestSettledBefore: what was settled less than Keep ago is never trimmed, and what was is, with the pass after.
func TestSettledBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		keep := time.Duration(rapid.IntRange(1, 1000).Draw(r, "keep")) * time.Second
		s, now, low := &topicState{}, time.Unix(1_800_000_000, 0), int64(0)
		type past struct {
			at  time.Time
			low int64
		}
		var passes []past
		for range rapid.IntRange(1, 100).Draw(r, "passes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(r, "pause")) * time.Second)
			low += int64(rapid.IntRange(0, 50).Draw(r, "settled"))
			passes = append(passes, past{now, low})
			got := s.settledBefore(now, keep, map[int32]int64{0: low})[0]
			allowed := int64(0)
			for _, p := range passes {
				if now.Sub(p.at) >= keep {
					allowed = p.low
				}
			}
			if got > allowed {
				r.Fatalf("trimmed to %d, and only %d was settled %v ago", got, allowed, keep)
			}
		}
	})
	s := &topicState{}
	if got := s.settledBefore(time.Now(), 0, map[int32]int64{0: 7})[0]; got != 7 {
		t.Errorf("without Keep trimmed to %d, want 7", got)
	}
}

// TestClaimedByTheBrokersClock: claims of several processes are told apart by their times, so that these are the brokers', however wrong our clock is.
func TestClaimedByTheBrokersClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, it := ownedItem(t)
		begun := time.Now()
		m.d.clock.take(begun.Add(time.Hour), begun, begun)
		m.sure, it.p.begun = begun.Add(time.Minute), true
		time.Sleep(time.Second)
		s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Minute, MaxRun: 1, MaxInflight: 1, Weights: driver.DefaultWeights}, done: make(chan struct{})}
		ds, err := s.Receive(t.Context(), 1)
		if err != nil || len(ds) != 1 || !ds[0].ClaimedAt.Equal(begun.Add(time.Hour+time.Second)) {
			t.Errorf("Receive: %+v, %v; want one claimed at %v", ds, err, begun.Add(time.Hour+time.Second))
		}
	})
}
