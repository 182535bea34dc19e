package monitor

import (
	"time"

	"github.com/ferrymq/ferry/worker"
)

// Figures are the numbers of a whole system at one moment: what its broker holds, how fast messages move and how long
// handlers take in all processes together, what machines and the backend use, and how often it failed.
type Figures struct {
	At     time.Time
	Health Health

	Queues []Queue
	// Ready, Inflight, Waiting and Dead are sums over groups; Delayed and Invalid over topics.
	Ready, Inflight, Waiting, Dead, Delayed, Invalid int64
	// InPerSecond and OutPerSecond are sums over groups, since the collection before.
	InPerSecond, OutPerSecond float64

	// Processes are those that told of themselves, Workers those of this process.
	Processes []Process
	Workers   []worker.Stats
	// Handlers are what all processes together did in the last minute, by topic and group.
	Handlers []Handler
	// Total is the sum of Handlers.
	Total Handler

	// Process is what this process uses, and Host the machine that it runs on.
	Process, Host Resources
	// Backend is what the broker's server or disk uses.
	Backend Usage
	// Partitions are those of topics that have some, if they were asked for.
	Partitions []PartitionFigures

	Failures Failures
	// Err is why a part is missing; nil if none is.
	Err error
}

// Process is what one process tells of itself.
type Process struct {
	Name string
	// Uptime is how long it runs.
	Uptime   time.Duration
	Uses     Resources
	Handlers []Handler
	// Figures are more that it tells, of its spool and its guards for example, by the names that rules of alerts use.
	Figures map[string]float64
}

// Figures that every process with workers tells: the keys of which it holds messages, and how many dead letters went to
// its emergency file since it started.
const (
	ActiveProcessors = "active_processors"
	EmergencyWrites  = "emergency_writes"
)

// Tell adds to a figure of the process.
func (p *Process) Tell(figure string, v float64) {
	if p.Figures == nil {
		p.Figures = map[string]float64{}
	}
	p.Figures[figure] += v
}

// Handler is what became of the messages of one group in the last minute.
type Handler struct {
	Topic, Group string
	// Processes is how many have a handler for it.
	Processes int
	// PerSecond are messages handled in a second.
	PerSecond float64
	// Handled counts messages whose handler ended. Failed of them failed, among them Timeouts; Retried will be tried
	// again.
	Handled, Failed, Retried, Timeouts uint64
	// Latencies is how long handlers took, and Waits how long messages of a first attempt waited for one.
	Latencies, Waits worker.Histogram
}

// ErrorRate is the share of what was handled that failed, from 0 to 1.
func (h Handler) ErrorRate() float64 { return share(h.Failed, h.Handled) }

// RetryRate is the share that will be tried again.
func (h Handler) RetryRate() float64 { return share(h.Retried, h.Handled) }

// TimeoutRate is the share whose handler took too long.
func (h Handler) TimeoutRate() float64 { return share(h.Timeouts, h.Handled) }

// Latency tells how long handlers took, over all processes.
func (h Handler) Latency() worker.Quantiles { return h.Latencies.Quantiles() }

// Wait tells how long messages waited for a handler, over all processes.
func (h Handler) Wait() worker.Quantiles { return h.Waits.Quantiles() }

func share(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// add adds what another process did.
func (h *Handler) add(o Handler) {
	h.Processes += max(o.Processes, 1)
	h.PerSecond += o.PerSecond
	h.Handled += o.Handled
	h.Failed += o.Failed
	h.Retried += o.Retried
	h.Timeouts += o.Timeouts
	h.Latencies.Add(o.Latencies)
	h.Waits.Add(o.Waits)
}

// HandlerOf is what a worker tells of one of its handlers.
func HandlerOf(c worker.ConsumerStats) Handler {
	r := c.Recent
	return Handler{Topic: c.Topic, Group: c.Group, Processes: 1, PerSecond: r.PerSecond, Handled: r.Handled,
		Failed:  r.Failed,
		Retried: r.Retried, Timeouts: r.Timeouts, Latencies: r.Latencies, Waits: r.Waits}
}

// Resources are what a process or a machine uses. Zero is not known.
type Resources struct {
	// CPU is the share of its processors that was busy, from 0 to 1.
	CPU float64
	// Memory is in use, of MemoryLimit.
	Memory, MemoryLimit int64
}

// PartitionFigures are how far a group has come in one partition.
type PartitionFigures struct {
	Topic, Group string
	Partition    int32
	// Owner is the instance that reads it; empty when none does.
	Owner string
	// Lag has not been read, and Pending has been read and is not settled.
	Lag, Pending int64
	// Moves is how often another owner was seen than the time before.
	Moves uint64
}

// Failures tell how often the system failed since the collector was made: it fails when its health becomes unhealthy,
// which a broker that cannot be reached is, and is repaired when it is not any more.
type Failures struct {
	// Uptime is how long the collector has been looking.
	Uptime time.Duration
	Count  uint64
	// Last is when the last failure began; zero if there was none. Down says that it lasts.
	Last time.Time
	Down bool
	// MTBF is the time between failures, MTTR that to repair, on average; zero while there was none.
	MTBF, MTTR time.Duration
}
