package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// StuckKind says in what way messages are stuck.
type StuckKind string

// Kinds.
const (
	Overdue     StuckKind = "overdue"      // delayed, or waiting for a retry, long past their time
	Unexpired   StuckKind = "unexpired"    // past their time to live, and still there
	Stalled     StuckKind = "stalled"      // ready, with consumers that take none
	LongRunning StuckKind = "long_running" // in a handler of this process that does not return
)

// Stuck is messages of one queue that do not go on.
type Stuck struct {
	Kind         StuckKind
	Topic, Group string
	// Count is how many were seen. A look sees no more than the first page of a state.
	Count int
	// Oldest is for how long the worst of them has been stuck, and ID which one it is, if that is known.
	Oldest time.Duration
	ID     string
	// Instance is the worker whose handler does not return, for LongRunning.
	Instance string
}

func (s Stuck) about() About {
	return About{Topic: s.Topic, Group: s.Group, Instance: s.Instance, Count: int64(s.Count), Age: s.Oldest}
}

// stalledLooks is how often nothing must have left a queue before it is stalled.
const stalledLooks = 3

// stuckPage is how many entries of a state a look reads.
const stuckPage = 100

func (m *Monitor) findStuck(ctx context.Context, s *Snapshot, readings map[queueName]reading) ([]Stuck, error) {
	found := m.longRunning(s)
	for i := range s.Queues {
		q := &s.Queues[i]
		if readings[queueName{q.Topic, q.Group}].stalled >= stalledLooks && q.Consumers > 0 && !q.Paused && q.Inflight == 0 {
			found = append(found, Stuck{Kind: Stalled, Topic: q.Topic, Group: q.Group, Count: int(q.Ready), Oldest: q.Oldest})
		}
		state, n := driver.StateWaiting, q.Waiting
		if q.Group == "" {
			state, n = driver.StateDelayed, q.Delayed
		}
		if n > 0 {
			late, err := m.late(ctx, q, state, s.At)
			if err != nil {
				return found, err
			}
			found = append(found, late...)
		}
		if q.Ready > 0 {
			late, err := m.late(ctx, q, driver.StateReady, s.At)
			if err != nil {
				return found, err
			}
			found = append(found, late...)
		}
	}
	return found, nil
}

// late finds entries past their time on the first page of a state.
func (m *Monitor) late(ctx context.Context, q *Queue, state driver.State, now time.Time) ([]Stuck, error) {
	page, err := m.broker.Driver().Browse(ctx, driver.Query{Topic: q.Topic, Group: q.Group, State: state, Limit: stuckPage,
		MaxScan: stuckPage})
	if errors.Is(err, ferry.ErrNotFound) {
		return nil, nil // deleted since
	}
	if err != nil {
		return nil, err
	}
	overdue := Stuck{Kind: Overdue, Topic: q.Topic, Group: q.Group}
	unexpired := Stuck{Kind: Unexpired, Topic: q.Topic, Group: q.Group}
	for _, e := range page.Entries {
		if !q.Paused {
			overdue.add(e, e.DueAt, now, m.o.Limits.Overdue)
		}
		unexpired.add(e, e.ExpiresAt, now, m.o.Limits.Overdue)
	}
	var found []Stuck
	for _, s := range []Stuck{overdue, unexpired} {
		if s.Count > 0 {
			found = append(found, s)
		}
	}
	return found, nil
}

func (s *Stuck) add(e driver.Entry, since, now time.Time, allowed time.Duration) {
	if since.IsZero() || now.Sub(since) <= allowed {
		return
	}
	s.Count++
	if age := now.Sub(since); age > s.Oldest {
		s.Oldest = age
		if e.Message != nil {
			s.ID = e.ID
		}
	}
}

// longRunning finds handlers of this process that do not return.
func (m *Monitor) longRunning(s *Snapshot) []Stuck {
	var found []Stuck
	for i, w := range m.o.Workers {
		byQueue := map[queueName]int{}
		for _, r := range w.Running(m.o.Limits.LongRunning) {
			name := queueName{r.Topic, r.Group}
			at, ok := byQueue[name]
			if !ok {
				at = len(found)
				byQueue[name] = at
				found = append(found, Stuck{Kind: LongRunning, Topic: r.Topic, Group: r.Group, Oldest: r.For, ID: r.ID,
					Instance: s.Workers[i].Instance})
			}
			found[at].Count++
		}
	}
	return found
}
