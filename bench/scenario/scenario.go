// Package scenario holds what the bench measures, one file for each kind of question.
//
// A scenario knows package system only. It opens an empty session, puts load on it, checks that everything that was
// published came back exactly once and unharmed, and returns its figures.
package scenario

import (
	"context"

	"github.com/ferrymq/ferry/bench/load"
	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/system"
)

// Scenario is one question, asked of every system that can answer it.
type Scenario struct {
	// Name is what flags and results call it, Title what people read.
	Name, Title string
	Measures    []Measure
	// Needs are features without which a system is left out, with its reason in the report.
	Needs []system.Feature
	// OursOnly asks it of no peer, FullOnly leaves it out of a quick run.
	OursOnly, FullOnly bool
	// Once takes it in the first round only: what it measures comes out the same in each.
	Once bool
	// LoadFrom names an earlier scenario with a rate: half of what the same system reached there is Env.Rate.
	LoadFrom string
	Run      func(ctx context.Context, env Env, sys system.System) (Result, error)
}

// Measure is one figure of a scenario.
type Measure struct {
	Name, Unit string
	// Lower says that less is better.
	Lower bool
	// Beside says that it is reported only where it has a target.
	Beside bool
}

func late(name string) Measure { return Measure{Name: name, Unit: "ms", Lower: true} }

// Measures that several scenarios share.
var (
	rate    = Measure{Name: "rate", Unit: "msg/s"}
	allocs  = Measure{Name: "allocs", Unit: "allocs/msg", Lower: true, Beside: true}
	server  = Measure{Name: "server", Unit: "µs/msg of the server", Lower: true, Beside: true}
	quarter = []Measure{late("p50"), late("p95"), late("p99"), late("p99.9")}
)

// Foreign is a system of another language. It takes its measurements itself, in a process of its own: to hand it every
// message from here would measure the handing over.
type Foreign interface {
	system.System
	// Answers says why it cannot answer a scenario. Empty: it can.
	Answers(scenario string) string
	// Measure answers it, with the scenario's measures and a verdict over all that was published.
	Measure(ctx context.Context, scenario string, env Env) (Result, error)
}

// On asks a system.
func (s Scenario) On(ctx context.Context, env Env, sys system.System) (Result, error) {
	if f, ok := sys.(Foreign); ok {
		return f.Measure(ctx, s.Name, env)
	}
	return s.Run(ctx, env, sys)
}

// InFull leaves the scenario out of a quick run.
func (s Scenario) InFull() Scenario {
	s.FullOnly = true
	return s
}

// Env is what a run is given.
type Env struct {
	Size Size
	Seed uint64
	// Rate is the load in messages per second, where a scenario has LoadFrom.
	Rate float64
	// Sampled lets a rig check a part of what it published, where that takes long: in an earlier round the same system
	// was checked to the end. Never of ours.
	Sampled bool
}

// Result is what one run of one scenario on one system found.
type Result struct {
	Values map[string]float64 `json:"values"`
	// Messages were in the measured stretch.
	Messages int           `json:"messages"`
	Reading  meter.Reading `json:"reading"`
	Verdict  load.Verdict  `json:"verdict"`
}

// CPUPerMessage is the processor time in µs of this process, and of its servers, for one message.
func (r Result) CPUPerMessage() (process, servers float64) {
	if r.Messages == 0 {
		return 0, 0
	}
	n := float64(r.Messages) * 1e3
	return float64(r.Reading.CPU) / n, float64(r.Reading.ServerCPU) / n
}
