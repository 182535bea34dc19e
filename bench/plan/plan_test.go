package plan

import (
	"slices"
	"testing"

	"github.com/ferrymq/ferry/bench/scenario"
)

// TestChecksAskForWhatIsMeasured: a check of a scenario or measure that does not exist would never be missed.
func TestChecksAskForWhatIsMeasured(t *testing.T) {
	t.Parallel()
	for _, p := range Brokers() {
		for _, c := range p.Checks {
			s, err := p.Scenario(c.Scenario)
			if err != nil {
				t.Error(err)
				continue
			}
			if !slices.ContainsFunc(s.Measures, func(m scenario.Measure) bool { return m.Name == c.Measure }) {
				t.Errorf("%s measures no %s", c.Scenario, c.Measure)
			}
			if c.Of != "" && !slices.ContainsFunc(p.Variants,
				func(v Variant) bool { return v.System.Info().Name == c.Of && slices.Contains(v.Scenarios, c.Scenario) }) {
				t.Errorf("%s is not measured on %s", c.Scenario, c.Of)
			}
			for _, at := range c.With {
				if _, err := p.Scenario(at.Scenario); err != nil {
					t.Error(err)
				}
				if at.System != "" {
					if _, err := p.System(at.System); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

// TestLoadsComeFromEarlierScenarios: otherwise an open loop would run at no load in the first round.
func TestLoadsComeFromEarlierScenarios(t *testing.T) {
	t.Parallel()
	for _, p := range Brokers() {
		seen := map[string]bool{}
		for _, s := range p.Scenarios {
			if s.LoadFrom != "" && !seen[s.LoadFrom] {
				t.Errorf("%s takes its load from %s, which comes later or never", s.Name, s.LoadFrom)
			}
			if seen[s.Name] {
				t.Errorf("two scenarios are called %s", s.Name)
			}
			seen[s.Name] = true
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	p, err := Memory().Select([]string{"latency", "pickup"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range p.Scenarios {
		names = append(names, s.Name)
	}
	if want := []string{"through-single-1KB", "latency", "pickup"}; !slices.Equal(names, want) {
		t.Errorf("selected %v, want %v: what is named, and what its load comes from", names, want)
	}
	if all, err := Memory().Select(nil); err != nil || len(all.Scenarios) != len(Memory().Scenarios) {
		t.Errorf("no words selected %d scenarios, %v", len(all.Scenarios), err)
	}
}
