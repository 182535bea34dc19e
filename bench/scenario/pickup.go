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
func Pickup() Scenario { return pickup("pickup", "idle pickup latency, 1 KB", false) }

// PickupAcked measures from when Publish returned: what the wait for the disk takes is not counted.
func PickupAcked() Scenario {
	return pickup("pickup-acked", "idle pickup latency after the publish was acknowledged, 1 KB", true)
}

func pickup(name, title string, acked bool) Scenario {
	measures := []Measure{late("p50"), late("p99")}
	return Scenario{
		Name: name, Title: title, Measures: measures, Needs: []system.Feature{system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Pickups + pickupWarm})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			ran := make(chan time.Time, 1)
			note := func(uint64, time.Time) error {
				ran <- time.Now()
				return nil
			}
			if err := r.consume(ctx, system.ConsumeOptions{}, note); err != nil {
				return res, err
			}
			idle := idleLoop{hist: newHistogram(), ran: ran, acked: acked, within: env.Size.PickupTime}
			span := r.start()
			n, err := r.publish(func(c *caller) error { return c.publishIdle(ctx, env.Seed, idle) })
			if err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			res, err = r.result(n, span.Stop())
			res.Values = quantiles(idle.hist, measures)
			return res, err
		},
	}
}

// idleLoop measures pickups one by one.
type idleLoop struct {
	hist   *hdrhistogram.Histogram
	ran    <-chan time.Time // when a handler ran
	acked  bool             // reckon from when the publish returned
	within time.Duration    // a slow system has fewer pickups in this time
}

// publishIdle publishes message after message, each a while after the one before was picked up. The time it has begins
// when the first was: what a system sets up for that is not counted.
func (c *caller) publishIdle(ctx context.Context, seed uint64, l idleLoop) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var until time.Time
	for c.next < c.limit && (c.next <= 2*pickupWarm || time.Now().Before(until)) {
		time.Sleep(time.Millisecond + time.Duration(rnd.Int64N(int64(2*time.Millisecond))))
		from := time.Now()
		if err := c.publisher.Publish(ctx, c.message(0, from)); err != nil {
			return err
		}
		if l.acked {
			from = time.Now()
		}
		select {
		case at := <-l.ran:
			if c.next == 1 {
				until = at.Add(l.within)
			}
			if c.next > pickupWarm {
				record(l.hist, at.Sub(from))
			}
		case <-ctx.Done():
			return fmt.Errorf("message %d was not picked up: %w", c.next, ctx.Err())
		}
	}
	return nil
}
