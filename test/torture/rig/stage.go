package rig

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/schedule"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// Roles of processes.
const (
	consumer = workload.RoleConsumer
	producer = workload.RoleProducer
)

// stage is where the processes of a run live: inside this process, or beside it.
type stage interface {
	// driver is for looking only, from outside the processes.
	driver() driver.Driver
	actions() schedule.Actions
	// start begins one life of a process.
	start(ctx context.Context, role string, seed uint64, name string) (process, error)
	// close ends everything that still lives, dead processes included.
	close(ctx context.Context) error
}

// process is one life of a producer or consumer.
type process interface {
	// kill ends it as kill -9 does. Nothing of it is written down from then on.
	kill() error
	// terminate asks it to end, as SIGTERM does.
	terminate() error
	// begin and end a fault by the name of its action.
	begin(action, value string) error
	end(action string) error
	// done is closed when it is over; err then says how it ended, nil after kill and terminate.
	done() <-chan struct{}
	err() error
}

var both = []string{consumer, producer}

// habits are the actions that any stage has: they are about handlers, and excuse nothing.
func habits() schedule.Actions {
	return schedule.Actions{
		"slow":  {Roles: []string{consumer}, Lasting: true, Value: "a duration", Help: "a few handlers take this long"},
		"fail":  {Roles: []string{consumer}, Lasting: true, Value: "a share between 0 and 1", Help: "this share of handlers fails"},
		"panic": {Roles: []string{consumer}, Lasting: true, Value: "a share between 0 and 1", Help: "this share of handlers panics"},
		"kill":  {Roles: both, Help: "kill -9; it is started again"},
		"term":  {Roles: both, Help: "SIGTERM; it is started again"},
		"stop":  {Roles: both, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
	}
}

// excuses are the actions after which a lease may be lost.
var excuses = map[string]bool{
	"stop": true, "cut": true, "lose-replies": true, "lose-renewals": true, "blackhole": true, "latency": true,
	"lose-requests": true, "reset-reply": true,
}
