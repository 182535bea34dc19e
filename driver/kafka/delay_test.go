package kafka

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTiers: whatever the delay, the hops through the tiers end before it is due, and are few.
func TestTiers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		remaining := time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, "delay"))
		days := int(remaining / (18 * time.Hour))
		hops := 0
		for remaining >= lastStretch {
			tier := tierFor(remaining)
			if tier == 0 {
				t.Fatalf("%v does not fit into a tier", remaining)
			}
			remaining -= tierWait(tier)
			hops++
		}
		if remaining < 0 || hops > 3*tiers+2*days {
			t.Fatalf("%v left after %d hops", remaining, hops)
		}
	})
}
