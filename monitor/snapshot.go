package monitor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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
	// Delayed, Held and Invalid belong to the topic: they are set where Group is empty.
	Delayed, Held, Invalid int64
	// Oldest is how long the oldest ready message has been ready.
	Oldest time.Duration
	// Full is how much of the bound of the topic is used, from 0 to 1; zero without a bound.
	Full float64

	// Counters since the topic began: what came in, was acknowledged, dropped, expired, cancelled, lost its lease, failed
	// and was tried again, and became a dead letter.
	In, Acked, Dropped, Expired, Cancelled, Redelivered, Retried, Died uint64
	InPerSecond, OutPerSecond                                          float64
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
	s, readings := m.look(ctx)
	found, err := m.findStuck(ctx, &s, readings)
	s.Stuck = found
	if err != nil && s.Err == nil {
		s.Err = err
	}
	s.Health = m.judge(&s, readings)
	return s
}

// look asks for counts, and compares them with those of the look before. It reads no message.
func (m *Monitor) look(ctx context.Context) (Snapshot, map[queueName]reading) {
	s := Snapshot{At: time.Now()}
	for _, w := range m.o.Workers {
		s.Workers = append(s.Workers, w.Stats())
	}
	topics, err := m.topics(ctx)
	if err == nil {
		s.Queues, err = m.queues(ctx, topics)
	}
	if err == nil {
		s.Backend, err = m.broker.Driver().Usage(ctx)
	}
	s.Err = err
	return s, m.remember(&s)
}

// queues asks for the counts of topics. Of those that were asked for before an error it tells.
func (m *Monitor) queues(ctx context.Context, topics []driver.TopicInfo) ([]Queue, error) {
	each := make([][]Queue, len(topics))
	err := m.each(ctx, len(topics), func(ctx context.Context, i int) error {
		stats, err := m.broker.Driver().Stats(ctx, topics[i].Topic)
		if err == nil {
			each[i] = queuesOf(topics[i].Config, stats)
		}
		return err
	})
	return slices.Concat(each...), err
}

// askers is how many requests are under way at once, where they cross a network.
const askers = 16

// each calls ask for 0 to n-1, several at once, and returns the first error; after it nothing more is asked, since the
// next would wait as long for nothing. What does not exist any more is no error.
func (m *Monitor) each(ctx context.Context, n int, ask func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			if err := ask(ctx, i); err != nil && !errors.Is(err, ferry.ErrNotFound) {
				cancel(err)
				return
			}
		}
	}
	if m.broker.Driver().Capabilities().Local {
		work()
		return context.Cause(ctx)
	}
	var all sync.WaitGroup
	for range min(n, askers) {
		all.Go(work)
	}
	all.Wait()
	return context.Cause(ctx)
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
	queues := []Queue{{Topic: s.Topic, Paused: s.Paused, Delayed: s.Delayed, Held: s.Held, Invalid: s.Invalid, Full: full,
		In: s.Published, Expired: s.Expired, Cancelled: s.Cancelled}}
	for _, g := range s.Groups {
		queues = append(queues, Queue{
			Topic: s.Topic, Group: g.Group, Paused: s.Paused || g.Paused, Consumers: g.Consumers,
			Ready: g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead, Oldest: g.Oldest, Full: full,
			In: g.Received, Acked: g.Acked, Dropped: g.Dropped, Expired: g.Expired, Cancelled: g.Cancelled,
			Redelivered: g.Redelivered, Retried: g.Retried, Died: g.Died,
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
