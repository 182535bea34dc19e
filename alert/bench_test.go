package alert

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/monitor"
)

// BenchmarkJudge evaluates 50 rules for each of 1,000 queues, none of which fires: what a look costs beside its
// collection.
func BenchmarkJudge(b *testing.B) {
	f := monitor.Figures{At: time.Now()}
	for i := range 1000 {
		f.Queues = append(f.Queues, monitor.Queue{Topic: fmt.Sprint("t", i)}, monitor.Queue{Topic: fmt.Sprint("t", i),
			Group: "g"})
		f.Handlers = append(f.Handlers, monitor.Handler{Topic: fmt.Sprint("t", i), Group: "g", Handled: 100})
	}
	var rules []Rule
	for i := range 50 {
		rules = append(rules, Rule{Name: fmt.Sprint(i), When: "queue_depth > threshold and error_rate >= 0", Threshold: 1000})
	}
	compiled, err := compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	r := &round{Watch: &Watch{}, alerts: map[alertKey]*Alert{}, counters: newCounters()}
	for b.Loop() {
		j := &judgement{round: r, subjects: byLevel(subjectsOf(f, systemValues(f), nil, r.counters)), now: time.Now(),
			seen: map[alertKey]bool{}}
		if err := j.judge(context.Background(), &ruleSet{all: compiled}, false); err != nil {
			b.Fatal(err)
		}
	}
}
