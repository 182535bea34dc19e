package scenario

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// Delay measures by how much delayed messages miss their time, over many random delays. Due is reckoned from before the
// call of Publish, so that whatever is earlier than that is early beyond doubt.
func Delay() Scenario {
	measures := []Measure{{"earliest", "ms", true}, {"p50", "ms", true}, {"p99", "ms", true}, {"latest", "ms", true}, {"early", "messages", true}}
	return Scenario{
		Name: "delay", Title: "delay error over random delays", Measures: measures, Needs: []system.Feature{system.Delays, system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Delays, Options: system.Options{Delayed: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			errors := make([]atomic.Int64, env.Size.Delays)
			note := func(seq uint64, due time.Time) error {
				if seq < uint64(len(errors)) {
					errors[seq].Store(int64(time.Since(due)))
				}
				return nil
			}
			if err := r.consume(ctx, system.ConsumeOptions{}, note); err != nil {
				return res, err
			}
			span := r.start()
			n, err := r.publish(func(c *caller) error { return c.publishDelayed(ctx, env) })
			if err != nil {
				return res, err
			}
			if err := r.ledger.Wait(ctx, n); err != nil {
				return res, err
			}
			res, err = r.result(n, span.Stop())
			res.Values = delayErrors(errors)
			return res, err
		},
	}
}

func (c *caller) publishDelayed(ctx context.Context, env Env) error {
	rnd := rand.New(rand.NewPCG(env.Seed, 2))
	for c.next < c.limit {
		delay := time.Millisecond + time.Duration(rnd.Int64N(int64(env.Size.DelaySpan)))
		m := c.message(0, time.Now().Add(delay))
		m.Delay = delay
		if err := c.publisher.Publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func delayErrors(errors []atomic.Int64) map[string]float64 {
	hist, early := newHistogram(), 0
	earliest, latest := time.Hour, -time.Hour
	for i := range errors {
		d := time.Duration(errors[i].Load())
		earliest, latest = min(earliest, d), max(latest, d)
		if d < 0 {
			early++
		}
		record(hist, d)
	}
	values := quantiles(hist, []Measure{{Name: "p50"}, {Name: "p99"}})
	values["earliest"], values["latest"], values["early"] = ms(earliest), ms(latest), float64(early)
	return values
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
