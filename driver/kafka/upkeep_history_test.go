package kafka

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSettledBefore: what was settled less than Keep ago is never trimmed, and what was is, with the pass after.
func TestSettledBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		keep := time.Duration(rapid.IntRange(1, 1000).Draw(r, "keep")) * time.Second
		s, now, low := trimHistory{}, time.Unix(1_800_000_000, 0), int64(0)
		type past struct {
			at  time.Time
			low int64
		}
		var passes []past
		for range rapid.IntRange(1, 100).Draw(r, "passes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(r, "pause")) * time.Second)
			low += int64(rapid.IntRange(0, 50).Draw(r, "settled"))
			passes = append(passes, past{now, low})
			got := s.before("orders", now, keep, map[int32]int64{0: low})[0]
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
	if got := (trimHistory{}).before("orders", time.Now(), 0, map[int32]int64{0: 7})[0]; got != 7 {
		t.Errorf("without Keep trimmed to %d, want 7", got)
	}
}
