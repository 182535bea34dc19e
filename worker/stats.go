package worker

import (
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Stats are numbers of a worker, taken at one moment. Counters begin with Run.
type Stats struct {
	Instance string
	// Uptime is how long ago Run began.
	Uptime time.Duration
	// Concurrency is how many handlers may run at once now, and Running how many do, zombies not counted.
	Concurrency, Running int
	// Zombies are handlers that go on although their message was settled or lost. Each occupies a slot.
	Zombies   int
	Consumers []ConsumerStats // in order of registration
}

// ConsumerStats are the numbers of one handler.
type ConsumerStats struct {
	Topic, Group string
	Quiet        bool // by Worker.Quiet

	Running  int // slots in use, zombies included
	Waiting  int // fetched and not started
	Settling int // outcomes on their way to the broker
	Lanes    int // keys of which something is held
	Zombies  int

	// What handlers decided.
	Acked, Retried, Dead, Dropped uint64
	// Released were given back uncounted: parked, or not started.
	Released uint64
	// LeasesLost are messages that were lost while their handler ran.
	LeasesLost uint64
	// Refused are outcomes the broker did not accept, because the message was no longer ours.
	Refused uint64
	// Unconfirmed are outcomes that were accepted most likely: the answer was lost, and a repeat found it done.
	Unconfirmed uint64
	// Late are results of zombies.
	Late uint64
	// Emergencies are dead letters that went to the emergency file because the broker did not take them. Alarm on any.
	Emergencies uint64
	// Failures are the failed attempts of Retried and Dead by their reason, in order of reasons. Of reasons of one's own
	// the first 32 are told apart, and the rest is "other".
	Failures []FailureCount
	// Redelivered are deliveries that were not the first of their message, by their cause: retry, lease_expired, released,
	// rebalance, replay, failover.
	Redelivered map[string]uint64
	// Latencies is how long handlers took, and Waits how long messages of a first attempt waited for one.
	Latencies, Waits Histogram

	// LastHandled is when a handler last returned; zero if none has.
	LastHandled time.Time
	Recent      Recent
}

// FailureCount counts attempts that failed for one reason.
type FailureCount struct {
	// Reason is "error" for those that a handler returned without another.
	Reason ferry.Reason
	// Retried will be tried again, and Dead became dead letters.
	Retried, Dead uint64
}

const (
	mostReasons = 32
	plainReason = "error" // of an attempt that will be repeated, and of which nothing more is known
	otherReason = "other" // of those beyond
)

// counters are guarded by engine.mu.
type counters struct {
	outcomes    [5]uint64 // by driver.Outcome, as decided
	released    uint64
	leasesLost  uint64
	refused     uint64
	unconfirmed uint64
	late        uint64
	emergencies uint64
	zombies     int
	failures    map[driver.Reason]*FailureCount
	causes      [driver.CauseFailover + 1]uint64 // of deliveries
}

func (c *consumer) tally(s *settlement) {
	c.count.decided(s)
	c.recent.outcome(s)
}

// decided counts an outcome, whether a handler ran or not.
func (n *counters) decided(s *settlement) {
	if int(s.Outcome) < len(n.outcomes) {
		n.outcomes[s.Outcome]++
	}
	if s.Outcome == driver.Retry || s.Outcome == driver.Dead {
		n.failure(s)
	}
}

// failure counts a failed attempt by its reason.
func (n *counters) failure(s *settlement) {
	reason := driver.Reason(plainReason)
	if s.Failure != nil && s.Failure.Reason != "" {
		reason = s.Failure.Reason
	}
	if n.failures[reason] == nil && len(n.failures) >= mostReasons {
		reason = otherReason
	}
	f := n.failures[reason]
	if f == nil {
		if n.failures == nil {
			n.failures = map[driver.Reason]*FailureCount{}
		}
		f = &FailureCount{Reason: reason}
		n.failures[reason] = f
	}
	if s.Outcome == driver.Dead {
		f.Dead++
	} else {
		f.Retried++
	}
}

// received counts why a message was delivered.
func (n *counters) received(d *driver.Delivery) {
	if int(d.Cause) < len(n.causes) {
		n.causes[d.Cause]++
	}
}

// Stats returns the numbers of the worker. It is cheap.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	e, concurrency := w.engine, w.options.Concurrency
	w.mu.Unlock()
	if e == nil {
		return Stats{Instance: w.options.Instance, Concurrency: concurrency}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	s := Stats{Instance: e.instance, Uptime: now, Concurrency: e.pool.limit, Running: e.active, Zombies: e.zombies}
	for _, c := range e.consumers {
		s.Consumers = append(s.Consumers, c.stats(now))
	}
	return s
}

func (c *consumer) stats(now time.Duration) ConsumerStats {
	n := &c.count
	s := ConsumerStats{
		Topic: c.topic, Group: c.group, Quiet: c.quiet,
		Running:     c.inUse,
		Waiting:     c.lanes.ready.n + c.lanes.queued + c.suspectsWaiting(),
		Settling:    len(c.outbox.runs) + len(c.outbox.sending),
		Lanes:       len(c.lanes.keys),
		Zombies:     n.zombies,
		Acked:       n.outcomes[driver.Ack],
		Retried:     n.outcomes[driver.Retry],
		Dead:        n.outcomes[driver.Dead],
		Dropped:     n.outcomes[driver.Drop],
		Released:    n.released,
		LeasesLost:  n.leasesLost,
		Refused:     n.refused,
		Unconfirmed: n.unconfirmed,
		Late:        n.late,
		Emergencies: n.emergencies,
		Latencies:   c.recent.latency.report(),
		Waits:       c.recent.wait.report(),
		Recent:      c.recent.report(now),
	}
	for _, f := range n.failures {
		s.Failures = append(s.Failures, *f)
	}
	slices.SortFunc(s.Failures, func(a, b FailureCount) int { return strings.Compare(string(a.Reason), string(b.Reason)) })
	for cause, n := range n.causes {
		if n > 0 && driver.Cause(cause) != driver.CauseFirst {
			if s.Redelivered == nil {
				s.Redelivered = map[string]uint64{}
			}
			s.Redelivered[driver.Cause(cause).String()] = n
		}
	}
	if c.recent.last > 0 {
		s.LastHandled = c.e.epoch.Add(c.recent.last)
	}
	return s
}
