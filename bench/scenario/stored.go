package scenario

import (
	"context"

	"github.com/ferrymq/ferry/bench/system"
)

// storedKeys is the number of keys that messages with keys are spread over.
const storedKeys = 10_000

// Stored measures what a waiting 1 KB message costs the servers or the disk beyond its body.
func Stored(keyed bool) Scenario {
	s := Scenario{
		Once: true, Name: "stored", Title: "memory of the server, or disk, for a waiting 1 KB message beyond its body",
		Measures: []Measure{{Name: "beyond", Unit: "B/msg", Lower: true}},
		Needs:    []system.Feature{system.Backlog, system.Consumes, system.Stores},
	}
	var keys keySet
	if keyed {
		keys = newKeys(storedKeys)
		s.Name, s.Title = "stored-keys", "the same with 10 k keys"
		s.Needs, s.OursOnly = append(s.Needs, system.Keys), true
	}
	s.Run = func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
		r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Heap, key: keys.choice(),
			Options: system.Options{Backlog: true}})
		if err != nil {
			return res, err
		}
		defer r.close(ctx, &err)
		span, before := r.start(), r.usage()
		n, err := r.fill(ctx, env, sys)
		if err != nil {
			return res, err
		}
		grown := float64(r.usage().Bytes - before.Bytes)
		reading := span.Stop()
		if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
			return res, err
		}
		if err := r.drained(ctx); err != nil {
			return res, err
		}
		res, err = r.result(n, reading)
		res.Values = map[string]float64{"beyond": grown/float64(n) - float64(r.bodies.Size())}
		return res, err
	}
	return s
}

// Leftover measures what remains of many messages after they were handled. Some went through before: what a system
// sets up once is not counted.
func Leftover() Scenario {
	return Scenario{
		Once: true, Name: "leftover", Title: "what remains on the server after all messages went through",
		Measures: []Measure{{Name: "keys", Unit: "keys", Lower: true}, {Name: "bytes", Unit: "KB", Lower: true}},
		Needs:    []system.Feature{system.Backlog, system.Consumes, system.Stores}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 1024, callers: 1, most: env.Size.Leftover,
				Options: system.Options{Backlog: true}})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			if err := r.consume(ctx, system.ConsumeOptions{}, nil); err != nil {
				return res, err
			}
			if err := r.warmUp(ctx, env, filling(sys), window); err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			span, before := r.start(), r.usage()
			n, err := r.publishAll(ctx, filling(sys))
			if err != nil {
				return res, err
			}
			if err := r.drained(ctx); err != nil {
				return res, err
			}
			after := r.usage()
			res, err = r.result(n, span.Stop())
			res.Values = map[string]float64{"keys": float64(after.Keys - before.Keys),
				"bytes": float64(after.Bytes-before.Bytes) / 1e3}
			return res, err
		},
	}
}
