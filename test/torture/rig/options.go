package rig

import (
	"cmp"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// Options of one run.
type Options struct {
	// Broker is a name of Brokers, or a URL.
	Broker string
	Fault  Fault
	Seed   uint64
	// Load is how long messages are published and faults happen. Defaults to 5 s.
	Load time.Duration
	// Dir gets the histories. Empty: none are written, and nothing can be checked.
	Dir string
	// Bin has the processes, see Build. Defaults to building them for this run.
	Bin string
	// Older has the processes of an older commit, see BuildOlder: a fault with the setup for it begins with them.
	Older string

	// Producers and Consumers are how many processes there are. Default to 2 and 3.
	Producers, Consumers int
	// Rate is messages per second of all producers together. Defaults to 500.
	Rate int
	// Lease of the consumers. Defaults to 2 s, or to the shortest that the broker has.
	Lease time.Duration
	// RedeliverIn is how much later than the lease a message of a killed consumer may come. Defaults to 1 s.
	RedeliverIn time.Duration
	// RecoverIn is how long after the end of a server's fault the next publish may be acknowledged. Defaults to 2 s, or
	// to what the broker needs.
	RecoverIn time.Duration
	// CommitIn is how soon the broker knows of claims and settlements. Defaults to what it promises.
	CommitIn time.Duration
	// ClockError is how well the driver knows the broker's clock. Defaults to what it promises.
	ClockError time.Duration
	// Clock stamps the histories of local processes. Defaults to history.Now.
	Clock func() int64
	// Drain is how long everything may take to be settled after the faults. Defaults to 30 s
	// and three leases.
	Drain time.Duration

	crowd string // the role of which Fault.Clients are
}

// Topic is what every run publishes to.
const Topic = "torture"

// What else every run has in common. More deliveries than the default: some faults take a lease from one message often.
const (
	concurrency   = 16
	maxAttempts   = 4
	maxDeliveries = 50
)

func groups() []string { return []string{"billing", "shipping"} }

func (o Options) withDefaults(p pace) Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	o.crowd = cmp.Or(p.crowd, consumer)
	def(&o.Load, 5*time.Second)
	def(&o.Lease, cmp.Or(p.lease, 2*time.Second))
	def(&o.RedeliverIn, time.Second)
	def(&o.RecoverIn, cmp.Or(p.recoverIn, 2*time.Second))
	def(&o.CommitIn, p.commits)
	def(&o.ClockError, p.clock)
	def(&o.Drain, 30*time.Second+3*p.lease)
	if o.Clock == nil {
		o.Clock = history.Now
	}
	if o.Producers == 0 {
		o.Producers = 2
	}
	if o.Consumers == 0 {
		o.Consumers = 3
	}
	if o.Rate == 0 {
		o.Rate = 500
	}
	return o
}

// settings of a process of a role.
func (o Options) settings(role string, seed uint64) workload.Settings {
	s := workload.Settings{
		Role: role, Topic: Topic, Groups: groups(), Seed: seed, Rate: o.Rate / o.Producers, Level: o.Fault.Level,
		Lease:       o.Lease,
		Concurrency: concurrency, MaxAttempts: maxAttempts, MaxDeliveries: maxDeliveries,
	}
	if role == o.crowd && o.Fault.Clients > 0 {
		s.Clients, s.Concurrency = o.Fault.Clients/max(o.Consumers, 1), 2
		if role == producer {
			s.Clients = o.Fault.Clients / o.Producers
		}
	}
	if role == app {
		s.Rate, s.Workers = o.Rate, o.Consumers
	}
	return s
}

// history opens the history of a process, or one that is not written.
func (o Options) history(name string) (*history.Writer, error) {
	log := history.Discard(name)
	if o.Dir != "" {
		var err error
		if log, err = history.Create(o.Dir, name); err != nil {
			return nil, err
		}
	}
	log.Clock = o.Clock
	return log, nil
}
