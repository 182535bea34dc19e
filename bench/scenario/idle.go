package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// Idle measures the processor time that a waiting consumer uses.
func Idle() Scenario {
	return Scenario{
		Name: "idle", Title: "processor time while nothing happens",
		Measures: []Measure{{Name: "cpu", Unit: "ms/s", Lower: true},
			{Name: "commands", Unit: "1/s", Lower: true, Beside: true}}, Needs: []system.Feature{system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: 1})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
				return res, err
			}
			if _, err := r.publishAll(ctx, singles); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			span, before := r.start(), r.usage()
			select {
			case <-time.After(env.Size.Idle):
			case <-ctx.Done():
				return res, fmt.Errorf("the run ended before the idle time: %w", ctx.Err())
			}
			commands := r.usage().Commands - before.Commands
			res, err = r.result(0, span.Stop())
			used := res.Reading.CPU + res.Reading.ServerCPU
			seconds := res.Reading.Elapsed.Seconds()
			res.Values = map[string]float64{"cpu": ms(used) / seconds, "commands": float64(commands) / seconds}
			return res, err
		},
	}
}
