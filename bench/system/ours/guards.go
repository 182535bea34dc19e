package ours

import (
	"errors"
	"time"

	"github.com/ferrymq/ferry/guard"
)

// guards returns layers that never bind.
func guards() (guard.Layers, error) {
	store := guard.NewMemory(guard.MemoryOptions{})
	limit, err1 := guard.NewLimiter(store, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "key", Rule: guard.Rule{Limit: guard.MaxLimit, Window: time.Second}}}})
	slots, err2 := guard.NewConcurrency(store, guard.ConcurrencyOptions{Name: "key", Max: 1000})
	breaker, err3 := guard.NewBreaker(guard.BreakerOptions{Name: "down"})
	return guard.Layers{Limit: limit, Concurrency: slots, Breaker: breaker}, errors.Join(err1, err2, err3)
}
