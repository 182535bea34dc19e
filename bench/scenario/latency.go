package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ferrymq/ferry/bench/system"
)

// Latency measures from the time a message was due to be published until its handler runs, in an open loop at half of
// the rate the same system reached in another scenario.
func Latency(from Scenario) Scenario {
	return Scenario{
		Name: "latency", Title: "end-to-end latency, 1 KB, open loop at 50 % of its own peak", Measures: quarter,
		Needs: []system.Feature{system.Consumes}, LoadFrom: from.Name,
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			if env.Rate <= 0 {
				env.Rate = 1000
			}
			return openLoop(ctx, env, sys, loop{rate: env.Rate, run: env.Size.Latency, callers: throughCallers})
		},
	}
}

// retryAfter is how long a poisoned message waits before it is tried again.
const retryAfter = 10 * time.Millisecond

var errPoisoned = errors.New("this message is poisoned")

// loop shapes an open loop.
type loop struct {
	rate    float64
	run     time.Duration
	callers int
	key     keyChoice
	// skip leaves messages out of the figures, poison makes their handler fail until all is published.
	skip, poison func(seq uint64) bool
}

func openLoop(ctx context.Context, env Env, sys system.System, l loop) (res Result, err error) {
	most := int(l.rate*l.run.Seconds()) + l.callers
	r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: l.callers, most: most, key: l.key})
	if err != nil {
		return res, err
	}
	defer r.close(ctx, &err)
	took := make([]atomic.Int64, most)
	var healed atomic.Bool
	work := func(seq uint64, stamp time.Time) error {
		if l.poison != nil && l.poison(seq) && !healed.Load() {
			return errPoisoned
		}
		if seq < uint64(most) {
			took[seq].Store(int64(time.Since(stamp)))
		}
		return nil
	}
	if err := r.consume(ctx, system.ConsumeOptions{RetryAfter: retryAfter}, work); err != nil {
		return res, err
	}
	interval := time.Duration(float64(time.Second) * float64(l.callers) / l.rate)
	span := r.start()
	n, err := r.publishAll(ctx, paced(interval, time.Now().Add(5*time.Millisecond)))
	if err != nil {
		return res, err
	}
	healed.Store(true)
	if err := r.drained(ctx); err != nil {
		return res, err
	}
	res, err = r.result(n, span.Stop())
	hist := newHistogram()
	each := most / l.callers
	for seq := range took {
		if warm := seq%each > each/10; warm && (l.skip == nil || !l.skip(uint64(seq))) {
			record(hist, time.Duration(took[seq].Load()))
		}
	}
	for name, v := range quantiles(hist, quarter) {
		res.Values[name] = v
	}
	return res, err
}

// newHistogram holds latencies from a nanosecond to a minute, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 0), int64(time.Minute))) // never out of range
}

// quantiles reads measures named p50, p99.9 and so on, in milliseconds.
func quantiles(h *hdrhistogram.Histogram, measures []Measure) map[string]float64 {
	values := map[string]float64{}
	for _, m := range measures {
		var q float64
		if _, err := fmt.Sscanf(m.Name, "p%g", &q); err == nil {
			values[m.Name] = float64(h.ValueAtQuantile(q)) / 1e6
		}
	}
	return values
}
