package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Options of a Monitor. The zero value watches every topic.
type Options struct {
	// Topics are those to look at; one that does not exist is a reason to be degraded. Defaults to all but Ferry's own, at
	// most 1000 of them.
	Topics []string
	// Workers are those of this process, whose figures belong to the picture. Defaults to none.
	Workers []*worker.Worker
	// Limits say what is bad. Each defaults to what is stated with it.
	Limits Limits
	// Interval is the time between two looks of Run. Defaults to 10 seconds.
	Interval time.Duration

	// Changed is told when the health differs from that of the look before. It runs in line: keep it short.
	Changed func(ctx context.Context, before, now Health)
	// Stuck is told of what a look found stuck. It runs in line: keep it short.
	Stuck func(ctx context.Context, found []Stuck)
}

// maxTopics bounds what one look costs.
const maxTopics = 1000

// Monitor looks at a broker. It remembers the last look, to tell rates.
type Monitor struct {
	broker *ferry.Broker
	log    *slog.Logger
	o      Options

	mu   sync.Mutex
	last map[queueName]reading
	was  *Health
}

type queueName struct{ topic, group string }

// New returns a monitor of a broker. It starts nothing: call Look, or Run.
func New(b *ferry.Broker, o Options) (*Monitor, error) {
	if b == nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the broker of the monitor is nil",
			"open one first, with open.URL for example", nil)
	}
	for i, w := range o.Workers {
		if w == nil {
			return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("worker %d of the monitor is nil", i),
				"make it with worker.New", nil)
		}
	}
	for _, topic := range o.Topics {
		if err := driver.CheckName("topic", topic); err != nil {
			return nil, err
		}
	}
	if o.Interval < 0 {
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the interval %v of the monitor is negative", o.Interval),
			"leave it zero for the default", nil)
	}
	if o.Interval == 0 {
		o.Interval = 10 * time.Second
	}
	var err error
	if o.Limits, err = o.Limits.resolved(); err != nil {
		return nil, err
	}
	return &Monitor{broker: b, log: b.Logger(), o: o, last: map[queueName]reading{}}, nil
}

// Run looks again and again until ctx ends, and tells Changed and Stuck.
func (m *Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(m.o.Interval)
	defer tick.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, max(m.o.Interval, time.Second))
		s := m.Look(look)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		m.tell(ctx, s)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// tell calls the hooks. One that panics is logged and harms nothing.
func (m *Monitor) tell(ctx context.Context, s Snapshot) {
	defer func() {
		if p := recover(); p != nil {
			m.log.ErrorContext(ctx, "a hook of the monitor panicked", "panic", p)
		}
	}()
	m.mu.Lock()
	before := m.was
	m.was = &s.Health
	m.mu.Unlock()
	if before == nil {
		before = &Health{Status: Healthy}
	}
	if before.Status != s.Health.Status {
		m.log.InfoContext(ctx, "the health has changed", "from", before.Status, "to", s.Health.Status, "reasons",
			s.Health.Reasons)
		if m.o.Changed != nil {
			m.o.Changed(ctx, *before, s.Health)
		}
	}
	if m.o.Stuck != nil && len(s.Stuck) > 0 {
		m.o.Stuck(ctx, s.Stuck)
	}
}
