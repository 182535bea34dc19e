package monitor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
	"github.com/ferrymq/ferry/internal/machine"
)

// CollectorOptions are options of a Collector. The zero value collects what this process and the broker tell.
type CollectorOptions struct {
	// Options say what to look at and what is bad. Changed is told by Run; Stuck is not used: a collection reads no
	// messages.
	Options
	// Processes tells of all processes of the system, for rates and percentiles over all of them: cluster.Processes does.
	// Defaults to this process alone.
	Processes func(ctx context.Context, b *ferry.Broker) ([]Process, error)
	// Partitions asks for the partitions of each topic, where the broker has some: a request for each topic more.
	Partitions bool
}

// Collector collects the figures of a whole system. It never reads a message.
type Collector struct {
	monitor *Monitor
	o       CollectorOptions

	collecting sync.Mutex // one at a time: rates are those since the collection before

	mu       sync.Mutex
	last     Figures
	sample   machine.Sample
	failures failures
	owners   map[partitionName]ownership
}

type partitionName struct {
	queueName
	partition int32
}

type ownership struct {
	owner string
	moves uint64
}

// NewCollector returns a collector. It starts nothing: call Collect, or Run.
func NewCollector(b *ferry.Broker, o CollectorOptions) (*Collector, error) {
	m, err := New(b, o.Options)
	if err != nil {
		return nil, err
	}
	c := &Collector{monitor: m, o: o, sample: machine.Read(), owners: map[partitionName]ownership{}}
	c.failures.since = time.Now()
	return c, nil
}

// Broker is the broker that it looks at.
func (c *Collector) Broker() *ferry.Broker { return c.monitor.broker }

// Run collects again and again until ctx ends, and tells Options.Changed.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(c.monitor.o.Interval)
	defer tick.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, max(c.monitor.o.Interval, time.Second))
		f := c.Collect(look)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		c.monitor.tell(ctx, Snapshot{Health: f.Health})
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Recent returns the last figures if they are not older than age, and collects otherwise. Callers that come together
// share one collection.
func (c *Collector) Recent(ctx context.Context, age time.Duration) Figures {
	asked := time.Now()
	if f, ok := c.since(asked.Add(-age)); ok {
		return f
	}
	c.collecting.Lock()
	defer c.collecting.Unlock()
	if f, ok := c.since(asked.Add(-age)); ok { // somebody was faster
		return f
	}
	return c.collect(ctx)
}

func (c *Collector) since(t time.Time) (Figures, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, !c.last.At.IsZero() && c.last.At.After(t)
}

// Collect collects now. A part that cannot be had is missing, and Err says why.
func (c *Collector) Collect(ctx context.Context) Figures {
	c.collecting.Lock()
	defer c.collecting.Unlock()
	return c.collect(ctx)
}

func (c *Collector) collect(ctx context.Context) Figures {
	var processes []Process
	var partitions []PartitionFigures
	var errProcesses, errPartitions error
	var parts sync.WaitGroup
	if c.o.Processes != nil {
		parts.Go(func() { processes, errProcesses = c.o.Processes(ctx, c.monitor.broker) })
	}
	s, readings := c.monitor.look(ctx)
	if c.o.Partitions && s.Err == nil {
		partitions, errPartitions = c.partitions(ctx, s.Queues)
	}
	parts.Wait()
	s.Health = c.monitor.judge(&s, readings)

	f := Figures{At: s.At, Health: s.Health, Queues: s.Queues, Workers: s.Workers, Backend: s.Backend,
		Processes: processes, Partitions: partitions,
		Err: errors.Join(s.Err, errProcesses, errPartitions)}
	f.sum()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.use(&f)
	if len(f.Processes) == 0 {
		f.Processes = []Process{own(&f)}
	}
	f.sumHandlers()
	c.failures.saw(f.Health, f.At)
	f.Failures = c.failures.report(f.At)
	c.last = f
	return f
}

// use tells what this process and its machine use, since the collection before.
func (c *Collector) use(f *Figures) {
	now := machine.Read()
	f.Process = Resources{CPU: now.ProcessCPU(c.sample), Memory: now.Resident, MemoryLimit: now.HostMemory}
	f.Host = Resources{CPU: now.HostCPU(c.sample), Memory: now.HostUsed, MemoryLimit: now.HostMemory}
	c.sample = now
}

// own is this process as it would tell of itself.
func own(f *Figures) Process {
	p := Process{Name: instance.Host(), Uses: f.Process}
	for _, w := range f.Workers {
		p.Uptime = max(p.Uptime, w.Uptime)
		for _, h := range w.Consumers {
			p.Handlers = append(p.Handlers, HandlerOf(h))
			p.Tell(ActiveProcessors, float64(h.Lanes))
			p.Tell(EmergencyWrites, float64(h.Emergencies))
		}
	}
	return p
}

// sum adds up the queues.
func (f *Figures) sum() {
	for i := range f.Queues {
		q := &f.Queues[i]
		f.Delayed += q.Delayed
		f.Invalid += q.Invalid
		if q.Group == "" {
			continue
		}
		f.Ready += q.Ready
		f.Inflight += q.Inflight
		f.Waiting += q.Waiting
		f.Dead += q.Dead
		f.InPerSecond += q.InPerSecond
		f.OutPerSecond += q.OutPerSecond
	}
}

// sumHandlers adds up what the processes did, in order of topics and groups.
func (f *Figures) sumHandlers() {
	at := map[queueName]int{}
	for _, p := range f.Processes {
		for _, h := range p.Handlers {
			name := queueName{h.Topic, h.Group}
			i, ok := at[name]
			if !ok {
				i = len(f.Handlers)
				at[name] = i
				f.Handlers = append(f.Handlers, Handler{Topic: h.Topic, Group: h.Group})
			}
			f.Handlers[i].add(h)
			f.Total.add(h)
		}
	}
	f.Total.Processes = len(f.Processes)
	slices.SortFunc(f.Handlers,
		func(a, b Handler) int { return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group)) })
}

// partitions asks for the partitions of every topic. A broker without any has none.
func (c *Collector) partitions(ctx context.Context, queues []Queue) ([]PartitionFigures, error) {
	log, err := c.monitor.broker.Log()
	if err != nil {
		return nil, nil //nolint:nilerr // it keeps no log, and so has nothing to tell
	}
	var topics []string
	for i := range queues {
		if queues[i].Group == "" {
			topics = append(topics, queues[i].Topic)
		}
	}
	found := make([][]driver.Partition, len(topics))
	err = c.monitor.each(ctx, len(topics), func(ctx context.Context, i int) (err error) {
		found[i], err = log.Partitions(ctx, topics[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.compareOwners(topics, found), nil
}

// compareOwners notes which partitions have another owner than the time before.
func (c *Collector) compareOwners(topics []string, found [][]driver.Partition) []PartitionFigures {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []PartitionFigures
	next := make(map[partitionName]ownership, len(c.owners))
	for i, topic := range topics {
		for _, p := range found[i] {
			for _, g := range p.Groups {
				name := partitionName{queueName{topic, g.Group}, p.Partition}
				o, known := c.owners[name]
				if known && o.owner != g.Owner {
					o.moves++
				}
				o.owner = g.Owner
				next[name] = o
				out = append(out, PartitionFigures{Topic: topic, Group: g.Group, Partition: p.Partition, Owner: g.Owner, Lag: g.Lag,
					Pending: g.Pending, Moves: o.moves})
			}
		}
	}
	c.owners = next
	return out
}
