// Package plan says, for each broker, what is measured against what and which targets hold. A broker is a file here.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/bench/scenario"
	"github.com/ferrymq/ferry/bench/system"
)

// Plan is the bench of one broker.
type Plan struct {
	Broker string
	// Prepare starts what all measurements share, where that takes long. May be nil.
	Prepare func() (stop func() error, err error)
	Ours    system.System
	// Variants are ours or a peer in other settings, measured where it matters.
	Variants []Variant
	Peers    []system.System
	// Limit is what the medium underneath can do without a queue.
	Limit     system.System
	Scenarios []scenario.Scenario
	Checks    []Check
}

// Variant is a system that is measured in a few scenarios only.
type Variant struct {
	System    system.System
	Scenarios []string
}

// Check is a figure of ours with a target, or a comparison beyond those of the same scenario on every other system.
type Check struct {
	Scenario, Measure string
	// Of is the variant whose figure it is. Empty: ours itself.
	Of string
	// With are the figures it is compared with; the best of them counts. Empty: the figure itself has the target.
	With []Point
	// Against is what the report calls them.
	Against string
	// AtLeast and AtMost bound the ratio (ours ÷ theirs), or the figure where there is nothing to compare with. Nil: no
	// bound.
	AtLeast, AtMost *float64
	// Over bounds by how much ours is more than theirs instead of the ratio.
	Over bool
}

// Point is one scenario on one system, ours if it has no name.
type Point struct{ Scenario, System string }

// Brokers are all that can be measured: those whose driver exists.
func Brokers() []Plan { return []Plan{Memory(), Disk(), Redis(), RedisStream(), Kafka(), Gateway()} }

// Find returns the plan of a broker, or an error that lists those that exist.
func Find(broker string) (Plan, error) {
	var names []string
	for _, p := range Brokers() {
		if p.Broker == broker {
			return p, nil
		}
		names = append(names, p.Broker)
	}
	return Plan{}, fmt.Errorf("there is no broker %q; there are: %s, and all", broker, strings.Join(names, ", "))
}

// Systems returns ours, its variants, the peers and the limit, in that order.
func (p Plan) Systems() []system.System {
	all := []system.System{p.Ours}
	for _, v := range p.Variants {
		all = append(all, v.System)
	}
	return append(all, p.others()...)
}

func (p Plan) others() []system.System {
	if p.Limit == nil {
		return p.Peers
	}
	return append(slices.Clone(p.Peers), p.Limit)
}

// IsPeer reports whether a system is one of the peers.
func (p Plan) IsPeer(name string) bool {
	return slices.ContainsFunc(p.Peers, func(s system.System) bool { return s.Info().Name == name })
}

// Asked returns the systems that a scenario is for, whether or not they can answer it.
func (p Plan) Asked(s scenario.Scenario) []system.System {
	asked := []system.System{p.Ours}
	for _, v := range p.Variants {
		if slices.Contains(v.Scenarios, s.Name) {
			asked = append(asked, v.System)
		}
	}
	if s.OursOnly {
		return asked
	}
	return append(asked, p.others()...)
}

// System returns the system with this name.
func (p Plan) System(name string) (system.System, error) {
	for _, s := range p.Systems() {
		if s.Info().Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("broker %s has no system %q", p.Broker, name)
}

// Scenario returns the scenario with this name.
func (p Plan) Scenario(name string) (scenario.Scenario, error) {
	for _, s := range p.Scenarios {
		if s.Name == name {
			return s, nil
		}
	}
	return scenario.Scenario{}, fmt.Errorf("broker %s has no scenario %q", p.Broker, name)
}

// Select returns the plan with only the scenarios whose name contains one of the words, and those they take their load
// from. No words: all of them.
func (p Plan) Select(words []string) (Plan, error) {
	if len(words) == 0 {
		return p, nil
	}
	wanted := map[string]bool{}
	for _, s := range p.Scenarios {
		for _, w := range words {
			if strings.Contains(s.Name, w) {
				wanted[s.Name], wanted[s.LoadFrom] = true, true
			}
		}
	}
	all := p.Scenarios
	p.Scenarios = nil
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if wanted[s.Name] {
			p.Scenarios = append(p.Scenarios, s)
		}
	}
	if len(p.Scenarios) == 0 {
		return p, fmt.Errorf("no scenario matches %q; there are: %s", strings.Join(words, ","), strings.Join(names, ", "))
	}
	return p, nil
}

func bound(v float64) *float64 { return &v }
