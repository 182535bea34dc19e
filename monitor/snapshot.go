package monitor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Usage is what the server or the disk of a broker uses.
type Usage = driver.Usage

// Snapshot is what one look saw.
type Snapshot struct {
	At     time.Time
	Health Health
	// Queues are the topics by group, and one with an empty Group for what belongs to a whole topic.
	Queues  []Queue
	Workers []worker.Stats
	// Backend is what the broker's server or disk uses.
	Backend Usage
	Stuck   []Stuck
	// Err is why a part is missing; nil if none is.
	Err error
}

// Queue is one group of a topic. Rates are per second since the look before, zero at the first.
type Queue struct {
	Topic, Group string
	Paused       bool
	Consumers    int

	Ready, Inflight, Waiting, Dead int64
	// Delayed and Invalid belong to the topic: they are set where Group is empty.
	Delayed, Invalid int64
	// Oldest is how long the oldest ready message has been ready.
	Oldest time.Duration
	// Full is how much of the bound of the topic is used, from 0 to 1; zero without a bound.
	Full float64

	// Counters since the topic began: what came in, was acknowledged, dropped, expired, and lost its lease.
	In, Acked, Dropped, Expired, Redelivered uint64
	InPerSecond, OutPerSecond                float64
	// Growth is how many more wait per second: less than zero while consumers catch up.
	Growth float64

	neverConsumed bool
}

// reading is what is remembered of a queue.
type reading struct {
	at      time.Time
	in, out uint64
	backlog int64
	growing int // looks in a row that saw more waiting
	stalled int // looks in a row that saw something wait and nothing leave
}

// Look takes a snapshot. A part that cannot be had is missing, and the health says so.
func (m *Monitor) Look(ctx context.Context) Snapshot {
	s := Snapshot{At: time.Now()}
	for _, w := range m.o.Workers {
		s.Workers = append(s.Workers, w.Stats())
	}
	topics, err := m.topics(ctx)
	var errs []error
	for _, t := range topics {
		var stats driver.TopicStats
		stats, err = m.broker.Driver().Stats(ctx, t.Topic)
		if errors.Is(err, ferry.ErrNotFound) {
			err = nil
			continue // deleted since, or not there yet
		}
		if err != nil {
			break // the next would wait as long for nothing
		}
		s.Queues = append(s.Queues, queuesOf(t.Config, stats)...)
	}
	if err == nil {
		s.Backend, err = m.broker.Driver().Usage(ctx)
	}
	if err != nil {
		errs = append(errs, err)
	}
	readings := m.remember(&s)
	found, err := m.findStuck(ctx, &s, readings)
	s.Stuck = found
	if err != nil && len(errs) == 0 {
		errs = append(errs, err)
	}
	s.Err = errors.Join(errs...)
	s.Health = m.judge(&s, readings)
	return s
}

// topics returns what to look at.
func (m *Monitor) topics(ctx context.Context) ([]driver.TopicInfo, error) {
	all, err := m.broker.Driver().Topics(ctx)
	if err != nil {
		return nil, err
	}
	if len(m.o.Topics) == 0 {
		all = slices.DeleteFunc(all, func(t driver.TopicInfo) bool { return driver.Reserved(t.Topic) })
		return all[:min(len(all), maxTopics)], nil
	}
	var some []driver.TopicInfo
	for _, name := range m.o.Topics {
		for _, t := range all {
			if t.Topic == name {
				some = append(some, t)
			}
		}
	}
	return some, nil
}

func queuesOf(config driver.TopicConfig, s driver.TopicStats) []Queue {
	var full float64
	if config.MaxMessages > 0 {
		full = float64(s.Messages) / float64(config.MaxMessages)
	}
	if config.MaxBytes > 0 {
		full = max(full, float64(s.Bytes)/float64(config.MaxBytes))
	}
	queues := []Queue{{Topic: s.Topic, Paused: s.Paused, Delayed: s.Delayed, Invalid: s.Invalid, Full: full, In: s.Published, Expired: s.Expired}}
	for _, g := range s.Groups {
		queues = append(queues, Queue{
			Topic: s.Topic, Group: g.Group, Paused: s.Paused || g.Paused, Consumers: g.Consumers,
			Ready: g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead, Oldest: g.Oldest, Full: full,
			In: g.Received, Acked: g.Acked, Dropped: g.Dropped, Expired: g.Expired, Redelivered: g.Redelivered,
			neverConsumed: g.NeverConsumed(),
		})
	}
	return queues
}

// backlog is what waits to be handled.
func (q *Queue) backlog() int64 { return q.Ready + q.Inflight + q.Waiting }

// remember works out rates from the look before, and keeps this one. Queues that are gone are forgotten.
func (m *Monitor) remember(s *Snapshot) map[queueName]reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := make(map[queueName]reading, len(s.Queues))
	for i := range s.Queues {
		q := &s.Queues[i]
		name := queueName{q.Topic, q.Group}
		now := reading{at: s.At, in: q.In, out: q.In - uint64(q.backlog()+q.Dead), backlog: q.backlog()}
		if before, ok := m.last[name]; ok {
			now.compare(q, before)
		}
		next[name] = now
	}
	if s.Queues != nil {
		m.last = next
	}
	return next
}

func (r *reading) compare(q *Queue, before reading) {
	seconds := r.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		r.growing, r.stalled = before.growing, before.stalled
		return
	}
	q.InPerSecond = max(0, float64(int64(r.in-before.in))/seconds)
	q.OutPerSecond = max(0, float64(int64(r.out-before.out))/seconds)
	q.Growth = float64(r.backlog-before.backlog) / seconds
	if r.backlog > before.backlog {
		r.growing = before.growing + 1
	}
	if q.Ready > 0 && r.out == before.out {
		r.stalled = before.stalled + 1
	}
}
