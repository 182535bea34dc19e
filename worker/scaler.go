package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
)

// scaler decides how many handlers may run. It remembers what was needed during the cooldown: the most of that is kept.
type scaler struct {
	Scaling
	wants []want // of the cooldown, oldest first; as many as intervals fit into it

	looked, worked time.Duration // at the last look: when it was, and how long handlers had worked by then
}

type want struct {
	at time.Duration
	n  int
}

// decide returns the number of handlers for a load.
func (s *scaler) decide(now time.Duration, l Load) int {
	n := min(max(s.Policy(l), s.Min), s.Max)
	s.wants = append(s.wants, want{now, n})
	s.wants = slices.DeleteFunc(s.wants, func(w want) bool { return now-w.at > s.Cooldown })
	for _, w := range s.wants {
		n = max(n, min(w.n, l.Current)) // what was needed lately is kept, not regained
	}
	if s.wants[0].at > now-s.Cooldown+s.Interval {
		n = max(n, l.Current) // too short a memory to take any away
	}
	return min(max(n, l.Current-s.StepDown), l.Current+s.StepUp)
}

// scale looks at the load until ctx ends.
func (e *engine) scale(ctx context.Context) {
	s := &scaler{Scaling: e.options.Scaling}
	tick := time.NewTicker(s.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.rescale(ctx, s); err != nil && ctx.Err() == nil {
			e.log.Warn("could not reckon how many handlers to run; their number stays", "error", err)
		}
	}
}

// rescale looks once.
func (e *engine) rescale(ctx context.Context, s *scaler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the scaling policy panicked: %v", p)
		}
	}()
	l, err := e.load(ctx, s)
	if err != nil {
		return err
	}
	if n := s.decide(e.now(), l); n != l.Current {
		e.resize(n)
		e.log.Debug("handlers scaled", "from", l.Current, "to", n, "depth", l.Depth, "oldest", l.Oldest)
	}
	return nil
}

// load takes stock of what waits.
func (e *engine) load(ctx context.Context, s *scaler) (Load, error) {
	e.mu.Lock()
	now := e.now()
	l := Load{Min: e.options.Scaling.Min, Max: e.options.Scaling.Max, Current: e.pool.limit, Running: e.active}
	var took time.Duration
	var runs uint64
	for _, c := range e.consumers {
		l.Depth += int64(c.lanes.ready.n + c.lanes.queued)
		sum := c.recent.sum(now)
		took, runs = took+sum.took, runs+sum.handled
	}
	l.Busy = max(float64(e.active), float64(e.worked-s.worked)/float64(max(now-s.looked, 1)))
	s.looked, s.worked = now, e.worked
	busy := e.active+e.zombies >= e.pool.limit
	e.mu.Unlock()
	if runs > 0 {
		l.HandlerTime = took / time.Duration(runs)
	}
	if !busy {
		return l, nil
	}
	err := e.loadOfBroker(ctx, &l)
	return l, err
}

// loadOfBroker adds what waits in the broker for the groups of this worker.
func (e *engine) loadOfBroker(ctx context.Context, l *Load) error {
	claiming := e.claiming()
	for i, c := range claiming {
		if slices.ContainsFunc(claiming[:i], func(o *consumer) bool { return o.topic == c.topic }) {
			continue // one answer serves all groups of a topic
		}
		stats, err := e.broker.Driver().Stats(ctx, c.topic)
		if errors.Is(err, ferry.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, g := range stats.Groups {
			if g.Paused || stats.Paused || !slices.ContainsFunc(claiming, func(o *consumer) bool {
				return o.topic == c.topic && o.group == g.Group
			}) {
				continue
			}
			l.Depth += g.Ready
			l.Oldest = max(l.Oldest, g.Oldest)
		}
	}
	return nil
}

// resize sets how many handlers may run at once. Running ones finish.
func (e *engine) resize(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining {
		return
	}
	e.pool.limit = n
	e.pool.wake.Broadcast() // slots that are too many end
	e.makeRoom()
	e.wakeSlot()
}
