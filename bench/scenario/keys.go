package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// keyChoice is the key of a message by its sequence number, the same each time it is asked.
type keyChoice func(seq uint64) string

// keySet is a number of keys that messages are spread over at random.
type keySet []string

func newKeys(n int) keySet {
	keys := make(keySet, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	return keys
}

func (k keySet) of(seq uint64) int { return int((seq * 0x9e3779b97f4a7c15 >> 33) % uint64(len(k))) }

func (k keySet) choice() keyChoice {
	if len(k) == 0 {
		return nil
	}
	return func(seq uint64) string { return k[k.of(seq)] }
}

// Keyed measures the drain of messages in the order of their keys. Zero keys: the same without any.
func Keyed(keys int) Scenario {
	s := Scenario{
		Name: "keys-" + thousands(keys), Title: fmt.Sprintf("drain 1 KB messages in order of %s", count(keys, "key")),
		Measures: []Measure{rate}, Needs: []system.Feature{system.Backlog, system.Keys}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			return drain(ctx, env, sys, backlog{most: env.Size.Backlog, keys: newKeys(keys)})
		},
	}
	if keys == 0 {
		s.Name, s.Title = "keys-none", "drain 1 KB messages without keys"
	}
	return s
}

// orderCheck sees whether messages of one key, published by one caller, are handled in their order.
type orderCheck struct {
	keys  keySet
	last  []atomic.Uint64 // by key: 1 + the last sequence number
	wrong atomic.Int64
}

func (o *orderCheck) note() func(uint64, time.Time) error {
	if len(o.keys) == 0 {
		return nil
	}
	return func(seq uint64, _ time.Time) error {
		if before := o.last[o.keys.of(seq)].Swap(seq + 1); before > seq {
			o.wrong.Add(1)
		}
		return nil
	}
}

// Poisoned measures latencies over many keys while the head of one of them fails again and again, and its followers
// wait. Figures are those of all other keys. Without poison it is the same run with nothing wrong.
func Poisoned(poison bool) Scenario {
	s := Scenario{
		Name: "poison-none", Title: "latency of 100 k keys, none poisoned", Measures: quarter,
		Needs: []system.Feature{system.Keys, system.Retries}, OursOnly: true,
	}
	if poison {
		s.Name, s.Title = "poison-one", "latency of 100 k keys beside one with a poisoned head"
	}
	s.Run = func(ctx context.Context, env Env, sys system.System) (Result, error) {
		keys := newKeys(env.Size.PoisonKeys)
		sick := func(seq uint64) bool { return seq%100 == 0 } // one message in a hundred has the sick key
		l := loop{rate: env.Size.PoisonRate, run: env.Size.Latency, callers: 1, skip: sick,
			key: func(seq uint64) string {
				if sick(seq) {
					return "sick"
				}
				return keys[keys.of(seq)]
			}}
		if poison {
			l.poison = func(seq uint64) bool { return seq == 0 }
		}
		return openLoop(ctx, env, sys, l)
	}
	return s
}
