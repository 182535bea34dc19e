package scenario

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/system"
)

// Heap measures what a waiting 1 KB message costs beyond its body.
func Heap() Scenario {
	return Scenario{
		Name: "heap", Title: "heap of a waiting 1 KB message beyond its body",
		Measures: []Measure{{Name: "beyond", Unit: "B/msg", Lower: true}},
		Needs:    []system.Feature{system.Backlog, system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Heap,
				Options: system.Options{Backlog: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			span, before := r.start(), meter.LiveHeap()
			n, err := r.fill(ctx, env, sys)
			if err != nil {
				return res, err
			}
			beyond := beyondBodies(before, n, r.bodies.Size())
			reading := span.Stop()
			if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			res, err = r.result(n, reading)
			res.Values = map[string]float64{"beyond": beyond / float64(n)}
			return res, err
		},
	}
}

// DelayedHeap measures what a million delayed messages cost beyond their bodies. They are never due: there is nothing
// to drain, and the verdict is empty.
func DelayedHeap() Scenario {
	return Scenario{
		Name: "delayed-heap", Title: "heap of 1 M delayed messages of 128 B beyond their bodies",
		Measures: []Measure{{Name: "beyond", Unit: "MB", Lower: true}},
		Needs:    []system.Feature{system.Delays}, OursOnly: true, FullOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 128, callers: 1, most: env.Size.DelayedHeap,
				Options: system.Options{Delayed: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			span, before := r.start(), meter.LiveHeap()
			c := r.callers[0]
			for c.next < c.limit {
				m := c.message(0, time.Time{})
				m.Delay = time.Hour + time.Duration(c.next)*time.Millisecond
				if err := c.publisher.Publish(ctx, m); err != nil {
					return res, err
				}
			}
			res = Result{Messages: c.next,
				Values: map[string]float64{"beyond": beyondBodies(before, c.next, r.bodies.Size()) / 1e6}, Reading: span.Stop()}
			return res, nil
		},
	}
}

// beyondBodies is how much the heap has grown, without the bodies of n messages.
func beyondBodies(before uint64, n, bodySize int) float64 {
	return float64(meter.LiveHeap()) - float64(before) - float64(n)*float64(bodySize)
}
