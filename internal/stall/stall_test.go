package stall

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAddsUp: only what a nap took too long counts, only from the moment that is asked for, and a stall that still
// lasts counts too.
func TestAddsUp(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	m := &Meter{wake: at(5)}
	m.woke(at(5))   // in time
	m.woke(at(30))  // 20 ms late
	m.woke(at(35))  // in time
	m.woke(at(140)) // 100 ms late
	for _, tc := range []struct{ from, now, want int }{
		{0, 140, 120},
		{30, 140, 100},
		{90, 140, 50},
		{140, 145, 0},
		{0, 165, 140}, // the nap that ends at 145 has not ended
	} {
		if got := m.between(at(tc.from), at(tc.now)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d ms, asked at %d ms: %v, want %d ms", tc.from, tc.now, got, tc.want)
		}
	}
}

// TestCrowdsAddUp: others had their share of the time that is asked for, also of what came after the last look.
func TestCrowdsAddUp(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	m := &Meter{wake: at(10_000)}
	if got := m.between(at(0), at(100)); got != 0 {
		t.Errorf("%v before anybody looked", got)
	}
	m.worked(crowd{at(0), at(100), 0.5})
	m.worked(crowd{at(100), at(200), 0})
	m.worked(crowd{at(200), at(300), 0.9})
	for _, tc := range []struct{ from, now, want int }{
		{0, 300, 140},
		{50, 300, 115},
		{150, 250, 45},
		{200, 400, 180},
		{350, 400, 45},
	} {
		if got := m.between(at(tc.from), at(tc.now)); got != time.Duration(tc.want)*time.Millisecond {
			t.Errorf("from %d ms, asked at %d ms: %v, want %d ms", tc.from, tc.now, got, tc.want)
		}
	}
	m.woke(at(10_400))
	if got := m.between(at(200), at(10_400)); got < 9*time.Second {
		t.Errorf("%v, but others had nine tenths of ten seconds", got)
	}
}

// TestShareOfOthers: who needs four times as long as alone had a quarter of the processor.
func TestShareOfOthers(t *testing.T) {
	for took, want := range map[time.Duration]float64{burst: 0, 5 * burst / 4: 0, 2 * burst: 0.5, 4 * burst: 0.75} {
		if got := taken(burst, took); got != want {
			t.Errorf("others had %v while %v took %v, want %v", got, burst, took, want)
		}
	}
}

// TestIdleMachine: in virtual time no machine stalls.
func TestIdleMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, m := time.Now(), Watch(t)
		time.Sleep(time.Minute)
		if got := m.Since(start); got != 0 {
			t.Errorf("stalled for %v", got)
		}
		if got := m.Elapsed(start); got != time.Minute {
			t.Errorf("%v elapsed, want a minute", got)
		}
	})
}
