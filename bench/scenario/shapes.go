package scenario

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/bench/system"
)

// Named are the rows that the programs are compared by that queues like this were written for. How long a call takes by
// the number of callers and the size of the body; a notification hub takes messages one by one or by the hundred, and
// hands them to one sender one by one or ten at a time; a customer service takes what many users write, in the order of
// each, and has to answer soon.
func Named() []Scenario {
	return []Scenario{
		Calls(1), Calls(10), Calls(50), Calls(100), CallsOf(10 << 10), CallsOf(100 << 10), CallsDelayed(),
		NotifyOut(1), NotifyOut(10), Service(),
	}
}

// NotifyOut measures how fast one handler, which never runs twice at once, is given messages: so many in a call.
func NotifyOut(batch int) Scenario {
	s := Scenario{
		Name: fmt.Sprintf("notify-out-%d", batch), Title: "drain 1 KB messages by one handler, one by one", OursOnly: true,
		Measures: []Measure{rate}, Needs: []system.Feature{system.Backlog, system.Consumes},
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			return drain(ctx, env, sys, backlog{most: env.Size.Backlog,
				consume: system.ConsumeOptions{Concurrency: 1, Batch: batch}})
		},
	}
	if batch > 1 {
		s.Title = fmt.Sprintf("drain 1 KB messages by one handler, %d in a call", batch)
	}
	return s
}

// What the service of Service is to carry.
const (
	serviceRate  = 10_000
	serviceUsers = 1_000
)

// Service measures an open loop of messages of many users, from when each was due to be published until its handler
// ran.
func Service() Scenario {
	return Scenario{
		Name: "service", Title: fmt.Sprintf("end-to-end latency, 1 KB, open loop of %s messages/s in order of %s users",
			thousands(serviceRate), thousands(serviceUsers)),
		Measures: append([]Measure{rate}, quarter...), Needs: []system.Feature{system.Consumes, system.Keys}, OursOnly: true,
		Run: func(ctx context.Context, env Env, sys system.System) (Result, error) {
			keys := newKeys(serviceUsers)
			return openLoop(ctx, env, sys, loop{rate: serviceRate, run: env.Size.Latency, callers: throughCallers,
				key: keys.choice()})
		},
	}
}
