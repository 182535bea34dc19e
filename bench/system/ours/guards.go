package ours

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/guard"
)

// guards returns layers that never bind: three, or all four with the one that refuses what was done before.
func guards(deduplicated bool) (guard.Layers, error) {
	store := guard.NewMemory(guard.MemoryOptions{MaxKeys: 1 << 23}) // more than a run has messages in a second
	limit, err1 := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "key", Rule: guard.Rule{Limit: guard.MaxLimit, Window: time.Second}}}})
	slots, err2 := guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "key", Max: 1000})
	breaker, err3 := guard.NewBreaker(guard.BreakerOptions{Name: "down"})
	layers, err := guard.Layers{Limit: limit, Concurrency: slots, Breaker: breaker}, errors.Join(err1, err2, err3)
	if deduplicated {
		var err4 error
		layers.Dedup, err4 = guard.NewDedup(store, guard.DedupOptions{Name: "once", Window: time.Second})
		err = errors.Join(err, err4)
	}
	return layers, err
}
