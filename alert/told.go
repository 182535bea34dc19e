package alert

import (
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry/monitor"
)

// windows are the figures that say how much a count of processes grew in a time, by the name of the count.
var windows = map[string]struct {
	figure string
	of     time.Duration
}{
	"kafka_failures_total":        {"kafka_failures", 5 * time.Minute},
	"rate_limit_violations_total": {"rate_limit_violations_hour", time.Hour},
	"users_blocked_total":         {"users_blocked_hour", time.Hour},
	"messages_denied_total":       {"messages_denied_hour", time.Hour},
}

// told adds up what processes and sources tell. What nobody tells is not in it.
func (c *counters) told(f monitor.Figures, sources map[string]float64) map[string]float64 {
	sum := map[string]float64{}
	for _, p := range f.Processes {
		for name, v := range p.Figures {
			switch _, counts := windows[name]; {
			case counts:
				c.count(p.Name, name, p.Uptime, v, f.At)
			case figures[name].told: // a process does not tell what others measure
				sum[name] += v
			}
		}
	}
	for name, v := range sources {
		if _, counts := windows[name]; counts {
			c.count("", name, 0, v, f.At)
			continue
		}
		sum[name] += v
	}
	for of, s := range c.processes {
		w := windows[of[1]]
		sum[w.figure] += float64(s.last - s.before(f.At.Add(-w.of)).n)
	}
	if n, ok := sum["dlq_unrecoverable"]; ok {
		sum["dlq_unrecoverable_day"] = c.unrecoverableDay(uint64(n), f.At)
	}
	return sum
}

// count notes a count of a process. All that a young one counted came since it started; of an old one that is seen for
// the first time nobody knows when it came.
func (c *counters) count(process, name string, uptime time.Duration, v float64, now time.Time) {
	of := [2]string{process, name}
	if s := c.processes[of]; (s == nil || uint64(v) < s.last) && uptime > 0 && uptime <= windows[name].of {
		c.processes[of] = &series{samples: []sample{{at: now.Add(-uptime)}}}
	}
	note(c.processes, of, uint64(v), now)
}

// unrecoverableDay is how many dead letters more recovery has given up than a day ago.
func (c *counters) unrecoverableDay(n uint64, now time.Time) float64 {
	c.unrecoverable.add(n, now)
	return float64(n - c.unrecoverable.before(now.Add(-24*time.Hour)).n)
}

// unjudged are rules that cannot fire at present, since nobody tells a figure that they need, and those figures.
func unjudged(rules *ruleSet, system map[string]any, guards bool) (names, missing []string) {
	lacks := func(name string) bool {
		_, known := system[name]
		if name == breakerOpen {
			known = guards
		}
		return figures[name].told && !known
	}
	all := map[string]bool{}
	for _, r := range rules.all {
		if r.Disabled || !slices.ContainsFunc(r.uses, lacks) {
			continue
		}
		names = append(names, r.Name)
		for _, name := range r.uses {
			if lacks(name) {
				all[name] = true
			}
		}
	}
	return names, slices.Sorted(maps.Keys(all))
}
