package delay

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// blind says that marks may have come that are about a message and are not known. Those that count were stored before
// sealed.
func (w *firer) blind(x *Delayed) bool { return w.synced.Before(x.due.Add(-sealed)) }

// lookAhead asks for the marks a while before the next message needs them, and reports whether it did: nobody who is
// due waits for them then.
func (w *firer) lookAhead(now time.Time) bool {
	if len(w.timers) == 0 || !w.blind(w.timers[0]) || w.timers[0].due.Sub(now) >= sealed/2 {
		return false
	}
	w.look.Give()
	return true
}

// readMarks learns which messages were moved or deleted, whenever it is asked, until the driver ends.
func (w *firer) readMarks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.look:
		}
		now := w.d.cluster.Now()
		if err := w.heldRows.Sync(ctx); err != nil {
			if cluster.Pause(ctx, cluster.FetchWait) != nil {
				return
			}
		} else {
			w.mu.Lock()
			w.synced = now
			w.mu.Unlock()
		}
		w.ring.Give() // after an error it is asked again
	}
}
