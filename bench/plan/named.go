package plan

import "slices"

// named are the targets of the rows that scenario.Named has: what the designs of such programs ask for.
type named struct {
	scenario string
	rate     float64 // msg/s at least; 0: none
	p95, p99 float64 // ms at most; 0: none
}

func (n named) checks() []Check {
	var all []Check
	if n.rate > 0 {
		all = append(all, Check{Scenario: n.scenario, Measure: "rate", AtLeast: bound(n.rate)})
	}
	if n.p95 > 0 {
		all = append(all, Check{Scenario: n.scenario, Measure: "p95", AtMost: bound(n.p95)})
	}
	if n.p99 > 0 {
		all = append(all, Check{Scenario: n.scenario, Measure: "p99", AtMost: bound(n.p99)})
	}
	return all
}

func targets(all ...named) []Check {
	var checks []Check
	for _, n := range all {
		checks = append(checks, n.checks()...)
	}
	return checks
}

// callTargets are those of a queue on Redis, by callers and by size.
func callTargets() []Check {
	return targets(
		named{"calls-10", 15_000, 2.3, 4.1}, named{"calls-50", 45_000, 5.2, 8.7}, named{"calls-100", 52_000, 12.1, 18.3},
		named{"calls-delayed", 12_000, 3.1, 5.2}, named{"calls-10KB", 8_000, 4.5, 7.8},
		named{"calls-100KB", 1_200, 15.2, 23.1},
	)
}

// hubTargets are those of a notification hub: one message in, a hundred in, one out, ten out.
func hubTargets(in, in100, out, out10 float64) []Check {
	return targets(named{scenario: "calls-1", rate: in}, named{scenario: "publish-batch", rate: in100},
		named{scenario: "notify-out-1", rate: out}, named{scenario: "notify-out-10", rate: out10})
}

// serviceTargets are those of a customer service: 10,000 in and 5,000 out per second, and soon.
func serviceTargets() []Check { return targets(named{scenario: "service", rate: 5_000, p99: 100}) }

// also adds checks to those of a broker.
func also(checks []Check, more ...[]Check) []Check {
	return slices.Concat(append([][]Check{checks}, more...)...)
}
