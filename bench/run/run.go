// Package run takes the measurements of a plan, round by round, the systems in turn within each scenario.
package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/bench/plan"
	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
)

// Job is one measurement to take.
type Job struct {
	Broker   string  `json:"broker"`
	Scenario string  `json:"scenario"`
	System   string  `json:"system"`
	Size     string  `json:"size"`
	Round    int     `json:"round"`
	Rate     float64 `json:"rate,omitempty"`
	// Profile is a file for the CPU profile of the measurement. Empty: none.
	Profile string `json:"profile,omitempty"`
}

// Round is one measurement taken. Every one is kept.
type Round struct {
	Job
	scenario.Result
	// Noisy says that somebody else used the machine meanwhile.
	Noisy bool `json:"noisy,omitempty"`
	// CPU and ServerCPU are µs of processor time for one message.
	CPU       float64 `json:"cpu_us_per_message,omitempty"`
	ServerCPU float64 `json:"server_cpu_us_per_message,omitempty"`
	// Error says why it is no measurement: something failed, was lost, repeated or corrupt.
	Error string `json:"error,omitempty"`
}

// Skipped is a system that cannot answer a scenario.
type Skipped struct {
	Scenario string `json:"scenario"`
	System   string `json:"system"`
	Reason   string `json:"reason"`
}

// Execute takes one measurement, here or in a process of its own.
type Execute func(ctx context.Context, j Job) (scenario.Result, error)

// peakShare is the part of its own peak that a system is loaded with in an open loop.
const peakShare = 0.5

// Plan takes all measurements of a plan. The first system of a round changes from round to round, so that none always
// follows the same neighbour. Progress is told of each one.
func Plan(ctx context.Context, p plan.Plan, size scenario.Size, execute Execute, progress func(Round)) ([]Round,
	[]Skipped) {
	var rounds []Round
	for n := 1; n <= size.Rounds; n++ {
		for _, s := range p.Scenarios {
			if s.FullOnly && size.Name == scenario.Quick().Name || s.Once && n > 1 {
				continue
			}
			for _, sys := range inTurn(able(p, s), n) {
				if ctx.Err() != nil {
					return rounds, skipped(p)
				}
				j := Job{Broker: p.Broker, Scenario: s.Name, System: sys.Info().Name, Size: size.Name, Round: n}
				if s.LoadFrom != "" {
					j.Rate = peakShare * rateOf(rounds, s.LoadFrom, j.System, n)
				}
				r := take(ctx, j, execute)
				progress(r)
				rounds = append(rounds, r)
			}
		}
	}
	return rounds, skipped(p)
}

func take(ctx context.Context, j Job, execute Execute) Round {
	r := Round{Job: j}
	res, err := execute(ctx, j)
	r.Result, r.Noisy = res, res.Reading.Noisy()
	r.CPU, r.ServerCPU = res.CPUPerMessage()
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// rateOf is what a system reached in an earlier scenario of the same round.
func rateOf(rounds []Round, scenario, system string, n int) float64 {
	for _, r := range rounds {
		if r.Round == n && r.Scenario == scenario && r.System == system && r.Error == "" {
			return r.Values["rate"]
		}
	}
	return 0
}

// able are the systems that can answer a scenario.
func able(p plan.Plan, s scenario.Scenario) []system.System {
	return slices.DeleteFunc(p.Asked(s), func(sys system.System) bool { return lacks(sys, s) != "" })
}

func inTurn(systems []system.System, round int) []system.System {
	if len(systems) == 0 {
		return nil
	}
	first := (round - 1) % len(systems)
	return append(append([]system.System{}, systems[first:]...), systems[:first]...)
}

func skipped(p plan.Plan) []Skipped {
	var out []Skipped
	for _, s := range p.Scenarios {
		for _, sys := range p.Asked(s) {
			if reason := lacks(sys, s); reason != "" {
				out = append(out, Skipped{Scenario: s.Name, System: sys.Info().Name, Reason: reason})
			}
		}
	}
	return out
}

func lacks(sys system.System, s scenario.Scenario) string {
	if f, ok := sys.(scenario.Foreign); ok {
		return f.Answers(s.Name)
	}
	for _, f := range s.Needs {
		if reason := sys.Lacks(f); reason != "" {
			return reason
		}
	}
	return ""
}

// Here takes a measurement in this process.
func Here(ctx context.Context, p plan.Plan, size scenario.Size, j Job) (scenario.Result, error) {
	s, err := p.Scenario(j.Scenario)
	if err != nil {
		return scenario.Result{}, err
	}
	sys, err := p.System(j.System)
	if err != nil {
		return scenario.Result{}, err
	}
	res, err := s.On(ctx, scenario.Env{Size: size, Seed: uint64(j.Round), Rate: j.Rate,
		Sampled: j.Round > 1 && p.IsPeer(j.System)}, sys)
	if err != nil {
		return res, fmt.Errorf("%s on %s: %w", j.Scenario, j.System, err)
	}
	return res, nil
}
