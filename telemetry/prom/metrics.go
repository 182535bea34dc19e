package prom

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/worker"
)

// Options of Metrics. The zero value is a good one.
type Options struct {
	// Broker is the label "broker" of every metric, for programs with several. Defaults to "default".
	Broker string
	// MaxTopics and MaxGroups are how many names are told apart; the figures of others are added up as "(other)". Default
	// to 1000 and 100.
	MaxTopics, MaxGroups int
	// MaxNames is how many limits, guards, breakers, locks and reasons of one's own are told apart, each. Defaults to 100.
	MaxNames int
	// Age is how old the figures of the broker may be that a scrape tells. Defaults to 10 seconds.
	Age time.Duration
	// Timeout is how long a scrape waits for the broker. Defaults to 5 seconds.
	Timeout time.Duration
	// Partitions counts what is settled by partition, for brokers that have some.
	Partitions bool
	// Logger is told, once for each label, that names are not told apart any more. Defaults to slog.Default.
	Logger *slog.Logger
}

// Sources are what figures come from. Each is optional.
type Sources struct {
	// Workers are those of this process.
	Workers []*worker.Worker
	// Collector asks the broker. Where several processes watch one broker, each may have one; their figures are the same,
	// so take the maximum, not the sum.
	Collector *monitor.Collector
	// Recoverers are those of this process; the one that leads has figures.
	Recoverers []*deadletter.Recoverer
	// Locks have the name of the label.
	Locks map[string]*cluster.LockMetrics
	// Spools are the drivers of brokers that have a spool in front.
	Spools []*spool.Driver
	// WeCom are the pipelines of this process.
	WeCom []*wecom.Pipeline
	// Guards is the store of guards, of which Limits says whose blocked keys are counted.
	Guards guard.Store
	Limits []string
}

// Metrics are the metrics of one broker and of what uses it in this process. It is a prometheus.Collector.
type Metrics struct {
	o          Options
	families   *families
	all        []*family
	bounds     *bounds
	publishers publishers
	guards     guards
	partitions partitions

	mu      sync.Mutex
	sources []Sources
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns metrics that know of nothing yet.
func New(o Options) (*Metrics, error) {
	if o.MaxTopics < 0 || o.MaxGroups < 0 || o.MaxNames < 0 || o.Age < 0 || o.Timeout < 0 {
		return nil, driver.NewError(ferry.ErrInvalid, "an option of the metrics is negative",
			"leave it zero for the default", nil)
	}
	if o.Broker == "" {
		o.Broker = "default"
	}
	o.MaxTopics, o.MaxGroups, o.MaxNames = or(o.MaxTopics, 1000), or(o.MaxGroups, 100), or(o.MaxNames, 100)
	o.Age, o.Timeout = or(o.Age, 10*time.Second), or(o.Timeout, 5*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	m := &Metrics{o: o, bounds: newBounds(o.Logger, map[string]int{
		"topic": o.MaxTopics, "group": o.MaxGroups, "reason": o.MaxNames, "limit": o.MaxNames,
		"name": o.MaxNames, "lock": o.MaxNames,
	})}
	m.families, m.all = newFamilies(o.Broker)
	m.publishers.bounds = m.bounds
	m.guards.bounds = m.bounds
	return m, nil
}

func or[T int | time.Duration](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

// Hooks count what is published. Give them to the broker, with Hooks.And beside others.
func (m *Metrics) Hooks() ferry.Hooks {
	h := ferry.Hooks{Published: m.publishers.done}
	if m.o.Partitions {
		h.Settled = m.partitions.settled
	}
	return h
}

// Guard counts what guards do. Give it to them as their hook.
func (m *Metrics) Guard() guard.Hook { return m.guards.happened }

// Watch adds what figures come from.
func (m *Metrics) Watch(s Sources) error {
	if i := slices.Index(s.Workers, nil); i >= 0 {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("worker %d of the metrics is nil", i),
			"make it with worker.New", nil)
	}
	if i := slices.Index(s.Recoverers, nil); i >= 0 {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("recoverer %d of the metrics is nil", i),
			"make it with deadletter.NewRecoverer", nil)
	}
	if i := slices.Index(s.Spools, nil); i >= 0 {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("spool %d of the metrics is nil", i),
			"make it with spool.New", nil)
	}
	if i := slices.Index(s.WeCom, nil); i >= 0 {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("pipeline %d of the metrics is nil", i),
			"make it with wecom.New", nil)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources = append(m.sources, s)
	return nil
}

// Describe tells which metrics there are.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range m.all {
		ch <- f.desc
	}
}

// Collect tells the figures. A broker that does not answer within Options.Timeout leaves its part out, and ferry_up is
// 0.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), m.o.Timeout)
	defer cancel()
	s := newSheet(m.bounds)
	s.add(m.families.build, 1, version())
	m.publishers.collect(s, m.families)
	m.partitions.collect(s, m.families)
	m.guards.collect(s, m.families)
	m.mu.Lock()
	sources := slices.Clone(m.sources)
	m.mu.Unlock()
	for _, from := range sources {
		m.collect(ctx, s, &from)
	}
	for label, n := range m.bounds.foldedNames() {
		s.add(m.families.folded, float64(n), label)
	}
	s.send(ch)
}

func (m *Metrics) collect(ctx context.Context, s *sheet, from *Sources) {
	for _, w := range from.Workers {
		m.families.ofWorker(s, w.Stats())
	}
	for _, r := range from.Recoverers {
		m.families.ofRecoverer(s, r.Stats())
	}
	for _, d := range from.Spools {
		m.families.ofSpool(s, d.SpoolStats())
	}
	for _, p := range from.WeCom {
		m.families.ofWeCom(ctx, s, p)
	}
	for name, l := range from.Locks {
		if l != nil {
			m.families.ofLock(s, name, l.Stats())
		}
	}
	if from.Collector != nil {
		m.families.ofSystem(s, from.Collector.Recent(ctx, m.o.Age))
	}
	if from.Guards != nil {
		m.families.ofLimits(ctx, s, from.Guards, from.Limits)
	}
}

// Handler serves these metrics with those of the Go runtime and of the process, in the text format and as protocol
// buffers, which native histograms need.
func (m *Metrics) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// version is that of Ferry in this program.
func version() string {
	const module = "github.com/ferrymq/ferry"
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range build.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return build.Main.Version
}
