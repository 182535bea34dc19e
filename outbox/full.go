package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
)

// wait is a topic that has no room: its rows are not read until it is over, so that they hold up nothing but their
// topic.
type wait struct {
	until time.Time
	pause time.Duration
}

func isFull(err error) bool { return errors.Is(err, ferry.ErrFull) }

// wait has topics without room wait, longer each time, and forgets those that had some.
func (r *Relay) wait(ctx context.Context, rows []*row, full map[string]error) {
	for _, row := range rows {
		if full[row.msg.Topic] == nil && row.err == nil {
			delete(r.waiting, row.msg.Topic)
		}
	}
	for topic, err := range full {
		w := r.waiting[topic]
		if w == nil {
			w = &wait{pause: firstPause}
			r.waiting[topic] = w
			r.log.WarnContext(ctx, "a topic has no room, and its rows wait", "topic", topic, "error", err)
		}
		w.until = time.Now().Add(w.pause)
		w.pause = min(2*w.pause, lastPause)
	}
}

// waits returns the topics whose rows wait now.
func (r *Relay) waits() (topics []any) {
	for topic, w := range r.waiting {
		if time.Now().Before(w.until) {
			topics = append(topics, topic)
		}
	}
	return topics
}
