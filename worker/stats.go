package worker

import (
	"time"

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

	// LastHandled is when a handler last returned; zero if none has.
	LastHandled time.Time
	Recent      Recent
}

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
}

func (c *consumer) tally(s *settlement) {
	if int(s.Outcome) < len(c.count.outcomes) {
		c.count.outcomes[s.Outcome]++
	}
	c.recent.outcome(s)
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
		Recent:      c.recent.report(now),
	}
	if c.recent.last > 0 {
		s.LastHandled = c.e.epoch.Add(c.recent.last)
	}
	return s
}
