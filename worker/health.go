package worker

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry"
)

// State is how a subscription fares.
type State string

// States of a subscription.
const (
	Starting     State = "starting"     // not subscribed yet
	OK           State = "ok"           // connected
	Reconnecting State = "reconnecting" // the broker is away; it is tried again
	Stopping     State = "stopping"     // the worker drains
	Stopped      State = "stopped"
)

// Health is how one subscription fares, and since when.
type Health struct {
	Topic, Group string
	State        State
	Since        time.Time
	// Err is the last error of the broker. It stays after a recovery; nil if there never was one.
	Err error
}

type health struct {
	state State
	since time.Time
	err   error
}

func (h *health) set(s State, now time.Time, err error) {
	if h.state != s {
		h.state, h.since = s, now
	}
	if err != nil {
		h.err = err
	}
}

// Health returns how each subscription fares, in order of registration. It is empty before Run.
func (w *Worker) Health() []Health {
	w.mu.Lock()
	e := w.engine
	w.mu.Unlock()
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []Health
	for _, c := range e.consumers {
		all = append(all, Health{Topic: c.topic, Group: c.group, State: c.health.state,
			Since: c.health.since, Err: c.health.err})
	}
	return all
}

// setHealth notes how c fares, and logs a change.
func (e *engine) setHealth(c *consumer, s State, err error) {
	e.mu.Lock()
	old := c.health.state
	if e.draining && s != Stopped {
		s = Stopping
	}
	c.health.set(s, time.Now(), err)
	e.mu.Unlock()
	switch {
	case old == s:
	case old == Starting && s == OK:
		e.log.Info("subscribed", "topic", c.topic, "group", c.group, "instance", e.instance)
	case s == Reconnecting && errors.Is(err, ferry.ErrFull):
		e.log.Warn("the broker has no room; trying again", "topic", c.topic, "group", c.group, "error", err)
	case s == Reconnecting:
		e.log.Warn("the broker is away; trying again", "topic", c.topic, "group", c.group, "error", err)
	case old == Reconnecting && s == OK:
		e.log.Info("the broker is back", "topic", c.topic, "group", c.group)
	}
}
