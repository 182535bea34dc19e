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
