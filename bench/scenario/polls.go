package scenario

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// poller is a session over HTTP whose receives can wait.
type poller interface {
	// Poll begins receives that wait, and returns what ends them.
	Poll(ctx context.Context, n int) (stop func(), err error)
}

// polls is how many receives wait.
const polls = 1000

// Polls measures the memory that receives cost that wait for messages: of the server and of the clients, which share
// the process.
func Polls() Scenario {
	return Scenario{
		Name: "polls", Title: "1,000 receives that wait, server and clients",
		Measures: []Measure{{Name: "memory", Unit: "MB", Lower: true}},
		Needs:    []system.Feature{system.Polls}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (res Result, err error) {
			r, err := newRig(ctx, env, sys, rigOptions{bodySize: 256, callers: 1, most: 1})
			if err != nil {
				return res, err
			}
			defer r.close(ctx, &err)
			p, ok := r.session.(poller)
			if !ok {
				return res, errors.New("the system has no receives that wait")
			}
			span, before, waiting := r.start(), inUse(), runtime.NumGoroutine()
			stop, err := p.Poll(ctx, polls)
			if err != nil {
				return res, err
			}
			defer stop()
			for runtime.NumGoroutine() < waiting+4*polls { // each has a client's and a server's side, of two and more goroutines
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					return res, ctx.Err()
				}
			}
			used := float64(inUse()-before) / (1 << 20)
			res, err = r.result(0, span.Stop())
			res.Values = map[string]float64{"memory": used}
			return res, err
		},
	}
}

// inUse is the memory of the heap and of stacks after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
