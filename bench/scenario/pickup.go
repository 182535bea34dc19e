package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ferrymq/ferry/bench/system"
)

// pickupWarm is how many pickups pass before they count.
const pickupWarm = 20

// Pickup measures from the call of Publish until the handler of an idle consumer runs.
func Pickup() Scenario {
	measures := []Measure{{"p50", "ms", true}, {"p99", "ms", true}}
	return Scenario{
		Name: "pickup", Title: "idle pickup latency, 1 KB", Measures: measures, Needs: []system.Feature{system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Pickups + pickupWarm})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			took := make(chan time.Duration, 1)
			note := func(_ uint64, stamp time.Time) error {
				took <- time.Since(stamp)
				return nil
			}
			if err := r.consume(ctx, system.ConsumeOptions{}, note); err != nil {
				return res, err
			}
			hist := newHistogram()
			span := r.start()
			n, err := r.publish(func(c *caller) error { return c.publishIdle(ctx, env.Seed, took, hist) })
			if err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			res, err = r.result(n, span.Stop())
			res.Values = quantiles(hist, measures)
			return res, err
		},
	}
}

// publishIdle publishes message after message, each a while after the one before was picked up.
func (c *caller) publishIdle(ctx context.Context, seed uint64, took <-chan time.Duration, hist *hdrhistogram.Histogram) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for c.next < c.limit {
		time.Sleep(time.Millisecond + time.Duration(rnd.Int64N(int64(2*time.Millisecond))))
		if err := c.publisher.Publish(ctx, c.message(0, time.Now())); err != nil {
			return err
		}
		select {
		case d := <-took:
			if c.next > pickupWarm {
				record(hist, d)
			}
		case <-ctx.Done():
			return fmt.Errorf("message %d was not picked up: %w", c.next, ctx.Err())
		}
	}
	return nil
}
