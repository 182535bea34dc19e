package scenario

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// Slow measures what is lost between 100 handlers of 100 ms each: 0 % is perfect scheduling.
func Slow() Scenario {
	const handlers, takes = 100, 100 * time.Millisecond
	return Scenario{
		Name: "slow-handlers", Title: "100 handlers of 100 ms each: time beyond the ideal",
		Measures: []Measure{{Name: "overhead", Unit: "%", Lower: true}},
		Needs:    []system.Feature{system.Backlog, system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: handlers * env.Size.SlowTurns,
				Options: system.Options{Backlog: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			n, err := r.publishAll(ctx, filling(sys))
			if err != nil {
				return res, err
			}
			span := r.start()
			work := func(uint64, time.Time) error {
				time.Sleep(takes)
				return nil
			}
			if err := r.consume(ctx, system.ConsumeOptions{Concurrency: handlers}, work); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			res, err = r.result(n, span.Stop())
			ideal := takes * time.Duration(env.Size.SlowTurns)
			res.Values = map[string]float64{"overhead": 100 * (float64(res.Reading.Elapsed)/float64(ideal) - 1)}
			return res, err
		},
	}
}
