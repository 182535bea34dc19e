package worker

import (
	"cmp"
	"slices"
	"time"
)

// RunningMessage is one message in a handler.
type RunningMessage struct {
	Topic, Group, ID, Key string
	Attempt               int
	// For is how long the handler has run.
	For time.Duration
	// Zombie: the message was settled or lost, and the handler goes on.
	Zombie bool
}

// Running returns the messages whose handler has run for at least this long, the longest first.
func (w *Worker) Running(atLeast time.Duration) []RunningMessage {
	w.mu.Lock()
	e := w.engine
	w.mu.Unlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	var all []RunningMessage
	for _, s := range e.pool.slots {
		if s.cur == nil || s.cur.state == starting || now-s.cur.started < atLeast {
			continue
		}
		s.cur.each(func(m *run) {
			all = append(all, RunningMessage{Topic: m.c.topic, Group: m.c.group, ID: m.d.ID, Key: m.d.Key, Attempt: m.d.Attempt,
				For: now - s.cur.started, Zombie: s.cur.abandoned})
		})
	}
	slices.SortStableFunc(all, func(a, b RunningMessage) int { return cmp.Compare(b.For, a.For) })
	return all
}
