package scenario

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/ferrymq/ferry/bench/system"
)

// Drain measures how fast a backlog is handled and acknowledged by a handler that does nothing.
func Drain() Scenario {
	return Scenario{
		Name: "drain", Title: "drain a backlog of 1 KB messages", Measures: []Measure{rate, allocs, server},
		Needs: []system.Feature{system.Backlog, system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			return drain(ctx, env, sys, backlog{most: env.Size.Backlog})
		},
	}
}

// DrainAt measures the same number of messages in front of a backlog of this size: it should not matter.
func DrainAt(behind int) Scenario {
	return Scenario{
		Name: "drain-at-" + thousands(behind), Title: fmt.Sprintf("drain 1 KB messages with %s more behind them",
			thousands(behind)),
		Measures: []Measure{rate}, Needs: []system.Feature{system.Backlog, system.Consumes}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			if env.Size.Name == "tiny" {
				behind = min(behind, env.Size.Backlog)
			}
			return drain(ctx, env, sys, backlog{most: behind + env.Size.Drained, timed: env.Size.Drained})
		},
	}
}

// backlog is what a drain begins with.
type backlog struct {
	most int
	// timed is how many of them are timed. Zero: all that the system took in the time there was.
	timed int
	keys  keySet
	// consume is how it is drained.
	consume system.ConsumeOptions
}

// publish fills it, and returns how many messages are to be timed.
func (b backlog) publish(ctx context.Context, env Env, sys system.System, r *rig) (int, error) {
	if b.timed == 0 {
		return r.fill(ctx, env, sys)
	}
	_, err := r.publishAll(ctx, filling(sys))
	return b.timed, err
}

// drain times the first part of a backlog, and drains the rest to check it.
func drain(ctx context.Context, env Env, sys system.System, b backlog) (res Result, err error) {
	r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: b.most, key: b.keys.choice(),
		Options: system.Options{Backlog: true}})
	if err != nil {
		return res, err
	}
	defer r.close(ctx, &err)
	timed, err := b.publish(ctx, env, sys, r)
	if err != nil {
		return res, err
	}
	order := orderCheck{keys: b.keys, last: make([]atomic.Uint64, len(b.keys))}
	runtime.GC() // what filling left behind is not the drain's
	span := r.start()
	if err := r.consume(ctx, b.consume, order.note()); err != nil {
		return res, err
	}
	if err := r.ledger.Wait(ctx, timed); err != nil {
		return res, err
	}
	if timed == r.ledger.Total() {
		err = r.session.Settled(ctx)
	}
	n, reading := min(r.ledger.Handled(), r.ledger.Total()), span.Stop()
	if err != nil {
		return res, err
	}
	if err := r.drained(ctx); err != nil {
		return res, err
	}
	if wrong := order.wrong.Load(); wrong > 0 {
		return res, fmt.Errorf("%d of %d messages overtook another one of their key", wrong, r.ledger.Total())
	}
	return r.result(n, reading)
}

// filling is the fastest way of a system to fill a backlog.
func filling(sys system.System) publishStyle {
	if sys.Lacks(system.Batches) == "" {
		return batches
	}
	return singles
}

// thousands is a short name of a round number: 100k, 1M.
func thousands(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
