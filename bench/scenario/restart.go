package scenario

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/bench/system"
)

// Restart measures how long a system takes to open again with a backlog, for each million messages. It was closed in
// good order.
func Restart() Scenario {
	return Scenario{
		Name: "restart", Title: "opening a backlog of 1 KB messages again",
		Measures: []Measure{{Name: "open", Unit: "s/M msg", Lower: true}},
		Needs:    []system.Feature{system.Backlog, system.Consumes, system.Restarts}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Leftover,
				Options: system.Options{Backlog: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			again, ok := r.session.(system.Restarter)
			if !ok {
				return res, fmt.Errorf("%s cannot be opened again", sys.Info().Name)
			}
			n, err := r.publishAll(ctx, filling(sys))
			if err != nil {
				return res, err
			}
			span := r.start()
			took, err := again.Restart(ctx)
			if err != nil {
				return res, err
			}
			reading := span.Stop()
			if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			res, err = r.result(n, reading)
			res.Values = map[string]float64{"open": took.Seconds() * 1e6 / float64(n)}
			return res, err
		},
	}
}
