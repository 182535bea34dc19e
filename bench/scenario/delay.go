package scenario

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// delayWarm is how many delayed messages pass before they count: whoever fires them may begin with the first.
const delayWarm = 20

// Delay measures by how much delayed messages miss their time, over many random delays. Due is reckoned from before the
// call of Publish, so that whatever is earlier than that is early beyond doubt.
func Delay() Scenario {
	return delay(Scenario{Name: "delay", Title: "delay error over random delays"})
}

// DelayLoaded measures the same while other messages flow at half of the rate the system reached in another scenario.
func DelayLoaded(from Scenario) Scenario {
	return delay(Scenario{Name: "delay-loaded", Title: "delay error over random delays, under half load",
		LoadFrom: from.Name})
}

func delay(s Scenario) Scenario {
	s.Measures = []Measure{late("earliest"), late("p50"), late("p99"), late("latest"),
		{Name: "early", Unit: "messages", Lower: true}}
	s.Needs = []system.Feature{system.Delays, system.Consumes}
	s.Run = func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
		l := newDelayLoad(env)
		r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: l.callers, most: l.callers * (delayWarm + l.each),
			Options: system.Options{Delayed: true}})
		if err != nil {
			return res, err
		}
		defer r.close(ctx, &err)
		errors := make([]atomic.Int64, env.Size.Delays)
		note := func(seq uint64, due time.Time) error {
			if i := int(seq) - delayWarm; i >= 0 && i < len(errors) { // the first caller's, which are the delayed ones
				errors[i].Store(int64(time.Since(due)))
			}
			return nil
		}
		if err := r.consume(ctx, system.ConsumeOptions{}, note); err != nil {
			return res, err
		}
		if err := l.warmUp(ctx, env, r); err != nil {
			return res, err
		}
		span := r.start()
		n, err := r.publish(func(c *caller) error { return l.publish(ctx, env, c) })
		if err != nil {
			return res, err
		}
		if err := r.ledger.Wait(ctx, r.ledger.Total()); err != nil {
			return res, err
		}
		res, err = r.result(n, span.Stop())
		res.Values = delayErrors(errors)
		return res, err
	}
	return s
}

// delayLoad is one caller with delayed messages, and others that publish at a steady rate until the last one is due.
type delayLoad struct {
	callers, each int
	interval      time.Duration
	begin         time.Time
}

func newDelayLoad(env Env) *delayLoad {
	if env.Rate <= 0 {
		return &delayLoad{callers: 1, each: env.Size.Delays}
	}
	l := &delayLoad{callers: 1 + throughCallers}
	perCaller := env.Rate / throughCallers
	l.interval = time.Duration(float64(time.Second) / perCaller)
	l.each = max(env.Size.Delays, int(perCaller*(2*env.Size.DelaySpan).Seconds()))
	return l
}

// warmUp lets the first delayed messages pass, and sets what each caller publishes after them.
func (l *delayLoad) warmUp(ctx context.Context, env Env, r *rig) error {
	first := r.callers[0]
	first.limit = delayWarm
	if err := first.publishDelayed(ctx, env); err != nil {
		return err
	}
	r.ledger.Published(first.number, first.next)
	if err := r.ledger.Wait(ctx, delayWarm); err != nil {
		return err
	}
	first.limit += env.Size.Delays
	l.begin = time.Now()
	return nil
}

func (l *delayLoad) publish(ctx context.Context, env Env, c *caller) error {
	if c.number == 0 {
		return c.publishDelayed(ctx, env)
	}
	var stop atomic.Bool
	timer := time.AfterFunc(2*env.Size.DelaySpan, func() { stop.Store(true) })
	defer timer.Stop()
	return paced(l.interval, l.begin)(ctx, c, &stop, 0)
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
