package scenario

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/bench/system"
)

// throughCallers publish at once in the through scenarios.
const throughCallers = 8

// ThroughSingles measures publish → handle → ack of messages published one by one.
func ThroughSingles(bodySize int) Scenario {
	return through("through-single", "single publishes by 8 callers", bodySize, throughCallers, window, singles)
}

// ThroughBatches measures publish → handle → ack of messages published in batches.
func ThroughBatches(bodySize int) Scenario {
	return through("through-batch", fmt.Sprintf("batches of %d by 8 callers", batchSize), bodySize, throughCallers, window,
		batches, system.Batches)
}

// ThroughGuarded is ThroughBatches with guards before the handler that do not bind: a rate limit, a concurrency limit
// and a breaker.
func ThroughGuarded(bodySize int) Scenario {
	s := throughWith(system.ConsumeOptions{Guarded: true}, "through-guarded", fmt.Sprintf("batches of %d by 8 callers, "+
		"guarded", batchSize), bodySize, throughCallers, window, batches, system.Batches)
	s.OursOnly = true
	return s
}

// ThroughGuardedByAll is the same with all four guards: one that refuses what was done before, too.
func ThroughGuardedByAll(bodySize int) Scenario {
	s := throughWith(system.ConsumeOptions{Guarded: true, Deduplicated: true}, "through-guarded-4", fmt.Sprintf(
		"batches of %d by 8 callers, behind all four guards", batchSize), bodySize, throughCallers, window, batches,
		system.Batches)
	s.OursOnly = true
	return s
}

// ThroughAsync measures publish → handle → ack of messages published asynchronously by one caller.
func ThroughAsync(bodySize int) Scenario {
	return through("through-async", "async publishes by 1 caller", bodySize, 1, window, async, system.Async)
}

// ThroughFlood measures publish → handle → ack while publishers go as fast as the system accepts, however far they run
// ahead of the handlers.
func ThroughFlood(bodySize int) Scenario {
	return through("through-flood", "single publishes by 8 callers who never wait for handlers", bodySize, throughCallers,
		0, singles)
}

func through(name, how string, bodySize, callers, ahead int, style publishStyle, needs ...system.Feature) Scenario {
	return throughWith(system.ConsumeOptions{}, name, how, bodySize, callers, ahead, style, needs...)
}

func throughWith(consume system.ConsumeOptions, name, how string, bodySize, callers, ahead int, style publishStyle,
	needs ...system.Feature) Scenario {
	return Scenario{
		Name: name + "-" + bodyLabel(bodySize, ""), Title: fmt.Sprintf("publish → handle → ack, %s, %s",
			bodyLabel(bodySize, " "), how),
		Measures: []Measure{rate, allocs, server}, Needs: append(needs, system.Consumes),
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			o := rigOptions{bodySize: bodySize, callers: callers, most: env.Size.Most}
			if ahead > 0 { // no backlog to bound the messages for
				o.most, o.Capacity = 4*env.Size.Most, 2*ahead
			}
			r, err := newRig(ctx, env, sys, o)
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			if err := r.consume(ctx, consume, nil); err != nil {
				return res, err
			}
			if err := r.warmUp(ctx, env, style, ahead); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			span := r.start()
			n, err := r.publishFor(ctx, env.Size.Run, style, ahead)
			if err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			return r.result(n, span.Stop())
		},
	}
}

func bodyLabel(n int, gap string) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d%sKB", n/1024, gap)
	}
	return fmt.Sprintf("%d%sB", n, gap)
}
