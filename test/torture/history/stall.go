package history

import (
	"context"
	"time"
)

// Stall is the Note of a fault that nobody asked for: the machine stood still, for a process or for all of them.
const Stall = "stall"

const (
	watchEvery = 20 * time.Millisecond
	slowWrite  = 200 * time.Millisecond
)

func (w *Writer) stall(about string, from, to int64) {
	w.write(Event{At: from, Kind: KindFault, Process: about, Note: Stall})
	w.write(Event{At: to, Kind: KindHeal, Process: about, Note: Stall})
}

// Watch writes down, until ctx ends, when this process did not get to run for longer than limit: a lease that is lost
// then is nobody's fault. About names the process that suffers, empty for all.
func (w *Writer) Watch(ctx context.Context, about string, limit time.Duration) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	last := w.Clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := w.Clock()
		if now-last > int64(limit) {
			w.stall(about, last, now)
		}
		last = now
	}
}
