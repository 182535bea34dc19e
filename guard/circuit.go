package guard

import (
	"sync"
	"time"
)

// circuit is one breaker. Counts belong to a term: from one state to the next, or with a ratio for an interval. What
// began in an earlier term says nothing of this one and is not counted.
//
// A closed one without a ratio asks for no time: that is what nearly every message meets.
type circuit struct {
	name string
	b    *Breaker

	mu      sync.Mutex
	state   State
	since   time.Time
	term    term
	ends    time.Time // when the term is over by itself; zero: never
	counts  counts
	forced  State   // "" for none
	changes []State // that the hook was not told of yet
}

// term numbers terms, from 1 on.
type term uint64

const (
	refused    term = 0
	unnumbered term = 1<<64 - 1 // of a circuit that is forced closed: nothing is counted
)

// counts are of one term.
type counts struct {
	requests, successes, failures, excluded int
	successesInARow, failuresInARow         int
}

// result is what a handler's end means for the downstream.
type result uint8

const (
	succeeded result = iota
	failed
	uncounted
)

// enter lets a message pass and returns the term that its result belongs to, or refused and when it is worth asking
// again.
func (c *circuit) enter() (term, time.Duration) {
	o := &c.b.o
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.forced {
	case StateClosed:
		return unnumbered, 0
	case StateOpen:
		return refused, min(o.Open, o.MaxPark)
	}
	c.turn()
	switch {
	case c.state == StateOpen:
		return refused, max(time.Until(c.ends), 0) + time.Millisecond
	case c.state == StateHalfOpen && c.counts.requests-c.counts.excluded >= o.Probes: // they are on their way
		return refused, min(max(o.Open/10, 100*time.Millisecond), time.Second)
	}
	c.counts.requests++
	return c.term, 0
}

// leave counts the result of a message that entered in a term.
func (c *circuit) leave(entered term, r result) {
	if entered == unnumbered {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	if c.term != entered {
		return
	}
	n := &c.counts
	switch r {
	case uncounted:
		n.excluded++
	case succeeded:
		n.successes++
		n.successesInARow, n.failuresInARow = n.successesInARow+1, 0
		if c.state == StateHalfOpen && n.successesInARow >= c.b.o.Probes {
			c.become(StateClosed, time.Now())
		}
	case failed:
		n.failures++
		n.successesInARow, n.failuresInARow = 0, n.failuresInARow+1
		if c.state == StateHalfOpen || c.state == StateClosed && c.trips() {
			c.become(StateOpen, time.Now())
		}
	}
}

// trips reports whether a closed one has seen enough.
func (c *circuit) trips() bool {
	n, o := &c.counts, &c.b.o
	if n.failuresInARow >= o.Failures {
		return true
	}
	judged := n.successes + n.failures
	return o.Ratio > 0 && judged >= o.MinRequests && float64(n.failures) >= o.Ratio*float64(judged)
}

// turn ends a term whose time is over. c.mu is held.
func (c *circuit) turn() {
	if c.ends.IsZero() {
		return
	}
	now := time.Now()
	switch {
	case !c.ends.Before(now):
	case c.state == StateOpen:
		c.become(StateHalfOpen, now)
	default:
		c.begin(now)
	}
}

// become is a new state. c.mu is held.
func (c *circuit) become(state State, now time.Time) {
	c.state, c.since = state, now
	c.begin(now)
	if c.b.o.Hook != nil {
		c.changes = append(c.changes, state)
	}
	c.b.sync.hurry()
}

// begin begins a term.
func (c *circuit) begin(now time.Time) {
	c.term++
	c.counts, c.ends = counts{}, time.Time{}
	switch {
	case c.state == StateOpen:
		c.ends = now.Add(c.b.o.Open)
	case c.state == StateClosed && c.b.o.Ratio > 0:
		c.ends = now.Add(c.b.o.Interval)
	}
}

// idle reports whether nothing is lost when it is forgotten.
func (c *circuit) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &c.counts
	return c.state == StateClosed && c.forced == "" && n.failuresInARow == 0 &&
		n.requests == n.successes+n.failures+n.excluded
}

// force gives it a state until it is given another, or "" to leave it to itself.
func (c *circuit) force(state State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forced = state
}
