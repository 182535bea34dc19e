package worker

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the longest next wait after a failed request: it doubles from one to the next, and each wait is spread
// over it (full jitter), so that many clients of a broker that returns do not come at once.
type backoff time.Duration

const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = time.Second
	leastBackoff = 5 * time.Millisecond // never a hot loop
)

// sleep waits, longer each time. It reports false if ctx ended meanwhile.
func (b *backoff) sleep(ctx context.Context) bool {
	*b = min(max(*b*2, backoff(firstBackoff)), backoff(lastBackoff))
	t := time.NewTimer(leastBackoff + rand.N(time.Duration(*b)))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
