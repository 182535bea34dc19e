package scenario

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/bench/system"
)

// Publish measures how fast callers can publish 1 KB messages while nobody consumes.
func Publish(callers int) Scenario {
	return publishing(fmt.Sprintf("publish-%d", callers), fmt.Sprintf("publish 1 KB, %s", count(callers, "caller")), 1024,
		callers, singles)
}

// PublishSmall measures the same with 256 B messages.
func PublishSmall(callers int) Scenario {
	return publishing(fmt.Sprintf("publish-%d-256B", callers), fmt.Sprintf("publish 256 B, %s", count(callers, "caller")),
		256, callers, singles)
}

// PublishSmallBatches measures one caller with explicit batches of 256 B messages.
func PublishSmallBatches() Scenario {
	return publishing("publish-batch-256B", fmt.Sprintf("publish 256 B, 1 caller, batches of %d", batchSize), 256, 1,
		batches, system.Batches)
}

// PublishBatches measures one caller with explicit batches.
func PublishBatches() Scenario {
	return publishing("publish-batch", fmt.Sprintf("publish 1 KB, 1 caller, batches of %d", batchSize), 1024, 1, batches,
		system.Batches)
}

// PublishAsync measures one caller that does not wait for acknowledgements one by one.
func PublishAsync() Scenario {
	return publishing("publish-async", "publish 1 KB, 1 caller, asynchronously", 1024, 1, async, system.Async)
}

func publishing(name, title string, size, callers int, style publishStyle, needs ...system.Feature) Scenario {
	return Scenario{
		Name: name, Title: title, Measures: []Measure{rate, allocs, server}, Needs: append(needs, system.Backlog),
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: size, callers: callers, most: env.Size.Most,
				Options: system.Options{Backlog: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			if err := r.warmUp(ctx, env, style, 0); err != nil {
				return res, err
			}
			span := r.start()
			n, err := r.publishFor(ctx, env.Size.Run, style, 0)
			reading := span.Stop()
			if err != nil {
				return res, err
			}
			if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
				return res, err
			}
			if err := r.checked(ctx, env); err != nil {
				return res, err
			}
			return r.result(n, reading)
		},
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
