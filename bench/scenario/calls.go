package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ferrymq/ferry/bench/system"
)

// callMeasures are how many calls of Publish there were, and how long each took.
var callMeasures = []Measure{rate, late("p95"), late("p99")}

// callBytes bounds the bodies of a run that holds all of them: large ones would fill the memory of the machine.
const callBytes = 256 << 20

// Calls measures how long each Publish of a 1 KB message takes while so many callers publish as fast as they can, and
// nobody consumes.
func Calls(callers int) Scenario {
	return calls(fmt.Sprintf("calls-%d", callers), fmt.Sprintf("each publish of 1 KB, %s", count(callers, "caller")),
		callers, 1024, false)
}

// CallsOf measures the same for larger bodies, by 10 callers.
func CallsOf(bodySize int) Scenario {
	const callers = 10
	return calls("calls-"+bodyLabel(bodySize, ""), fmt.Sprintf("each publish of %s, %s", bodyLabel(bodySize, " "),
		count(callers, "caller")), callers, bodySize, false)
}

// CallsDelayed measures the same for messages with a delay, by 10 callers.
func CallsDelayed() Scenario {
	const callers = 10
	return calls("calls-delayed", fmt.Sprintf("each delayed publish of 1 KB, %s", count(callers, "caller")), callers, 1024,
		true)
}

func calls(name, title string, callers, bodySize int, delayed bool) Scenario {
	s := Scenario{Name: name, Title: title, Measures: callMeasures, Needs: []system.Feature{system.Backlog},
		OursOnly: true}
	if delayed {
		s.Needs = append(s.Needs, system.Delays)
	}
	s.Run = func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
		most := min(env.Size.Most, callBytes/bodySize)
		r, err := newRig(ctx, env, sys, rigOptions{bodySize: bodySize, callers: callers, most: most,
			Options: system.Options{Backlog: true, Delayed: delayed}})
		if err != nil {
			return res, err
		}
		defer r.close(ctx, &err)
		t := &timedCalls{each: make([]*hdrhistogram.Histogram, callers)}
		if delayed {
			t.delay = env.Size.DelaySpan // longer than the run: nothing is due while it is measured
		}
		if err := r.warmUp(ctx, env, t.publish, 0); err != nil {
			return res, err
		}
		for i := range t.each {
			t.each[i] = newHistogram()
		}
		span := r.start()
		n, err := r.publishFor(ctx, env.Size.Run, t.publish, 0)
		reading := span.Stop()
		if err != nil {
			return res, err
		}
		if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
			return res, err
		}
		if err := r.drained(ctx); err != nil {
			return res, err
		}
		res, err = r.result(n, reading)
		return t.addTo(res), err
	}
	return s
}

// timedCalls publishes one by one, and notes how long each call takes.
type timedCalls struct {
	delay time.Duration
	each  []*hdrhistogram.Histogram // of each caller; nil while nothing is measured
}

func (t *timedCalls) publish(ctx context.Context, c *caller, stop *atomic.Bool, _ int) error {
	for c.next < c.limit {
		m := c.message(0, time.Time{})
		m.Delay = t.delay
		began := time.Now()
		if err := c.publisher.Publish(ctx, m); err != nil {
			return err
		}
		if h := t.each[c.number]; h != nil {
			record(h, time.Since(began))
		}
		if stop.Load() {
			break
		}
	}
	return nil
}

// addTo puts the times of all callers beside the rate.
func (t *timedCalls) addTo(res Result) Result {
	all := newHistogram()
	for _, h := range t.each {
		all.Merge(h)
	}
	for name, v := range quantiles(all, callMeasures) {
		res.Values[name] = v
	}
	return res
}
