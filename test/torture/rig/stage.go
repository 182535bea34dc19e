package rig

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/schedule"
	"github.com/ferrymq/ferry/test/torture/workload"
)

// Roles that a schedule names: processes, and the servers of the broker.
const (
	consumer = workload.RoleConsumer
	producer = workload.RoleProducer
	app      = workload.RoleApp
	server   = "server"
)

// stage is where the processes of a run live: inside this process, or beside it.
type stage interface {
	// look calls f with a driver that is for looking only, from outside the processes.
	look(ctx context.Context, f func(driver.Driver) error) error
	// start begins one life of a process.
	start(ctx context.Context, role string, seed uint64, name string) (process, error)
	// servers are those that can be harmed, nil if there are none.
	servers() servers
	// drain ends the producers and, when nothing is left to do or the time is over, the consumers.
	drain(ctx context.Context, c *cast) error
	// close ends everything that still lives, dead processes included.
	close(ctx context.Context) error
}

// process is one life of a producer, a consumer or an app.
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

// servers are those of a broker that runs beside the processes.
type servers interface {
	// begin and end a fault of one server, or of all with number 0. Begin says what came on top of it, if anything did.
	// End returns when the broker works again.
	begin(s schedule.Step, number int) (extra string, err error)
	end(ctx context.Context, s schedule.Step, number int) error
}
