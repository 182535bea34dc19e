package rig

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// serverActions can be done to any server, and make nobody take over.
func serverActions() schedule.Actions {
	return schedule.Actions{
		"flush-scripts": {Roles: []string{server}, Help: "SCRIPT FLUSH"},
		"kill-clients":  {Roles: []string{server}, Help: "CLIENT KILL of all connections"},
		"pause":         {Roles: []string{server}, Lasting: true, Help: "CLIENT PAUSE of all writes"},
		"pause-all":     {Roles: []string{server}, Lasting: true, Help: "CLIENT PAUSE of all commands"},
		"oom": {Roles: []string{server}, Lasting: true,
			Help: "maxmemory is half of what is used, nothing is evicted"},
	}
}

// crashActions are for a server that nobody takes over from.
func crashActions() schedule.Actions {
	return schedule.Actions{
		"crash":    {Roles: []string{server}, Lasting: true, Help: "kill -9, then started again with its files"},
		"freeze":   {Roles: []string{server}, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
		"sleep":    {Roles: []string{server}, Lasting: true, Help: "DEBUG SLEEP"},
		"readonly": {Roles: []string{server}, Lasting: true, Help: "it becomes a replica of nobody, and refuses writes"},
		"usurp": {Roles: []string{server}, Lasting: true, Help: "the name of a key of the topic that is empty is taken " +
			"by a string"},
		busy: {Roles: []string{server}, Lasting: true, Help: "a script of somebody else runs all the time: BUSY"},
		misconf: {Roles: []string{server}, Lasting: true,
			Help: "it cannot write its snapshot, and refuses writes: MISCONF"},
		"flush-all": {Roles: []string{server}, Help: "FLUSHALL"},

		history.StepClock: {Roles: []string{server}, Lasting: true, Value: "an offset such as 5s",
			Help: "its clock is set, and set back"},
		history.PowerCut: {Roles: []string{server}, Lasting: true,
			Help: "kill -9, its file is cut to what it was a second ago, then started again"},
	}
}

// failoverActions are for sets.
func failoverActions() schedule.Actions {
	actions := schedule.Actions{
		"failover": {Lasting: true, Help: "kill -9 of the primary; another takes over, and it comes back as a replica"},
		"switch":   {Lasting: true, Help: "the primary hands over while it is used"},

		history.FreezePrimary: {Lasting: true, Help: "SIGSTOP of the primary until another has taken over; then it goes " +
			"on, and believes that it still is"},
	}
	if redistest.CanPartition() {
		actions["partition"] = schedule.Action{Lasting: true, Help: "the primary is cut off from the other servers, not " +
			"from its clients"}
	}
	return actions
}

// serverFaults are those of Redis servers.
func serverFaults() []Fault {
	const least = 6 * time.Second
	return []Fault{
		{Name: "restart-server", Help: "kill -9 of the server, appendfsync everysec", Setup: setupEverySecond,
			Least: 10 * time.Second, Schedule: "every 1500ms-2500ms from 700ms crash server any for 300ms"},
		{Name: "restart-server-always", Help: "kill -9 of the server, appendfsync always", Setup: setupAlways,
			Least: 10 * time.Second, Schedule: "every 1500ms-2500ms from 700ms crash server any for 300ms"},
		{Name: "freeze-server", Help: "SIGSTOP of the server, once beyond the lease", Least: 8 * time.Second,
			Schedule: "every 2s from 500ms until 4s freeze server any for 700ms; at 4s freeze server any for LEASE*1.2"},
		{Name: "sleep-server", Help: "DEBUG SLEEP", Least: least, Schedule: "every 1s-2s sleep server any for 700ms"},
		{Name: "pause-server", Help: "CLIENT PAUSE", Least: least,
			Schedule: "every 2s from 500ms pause server all for 500ms; every 2s from 1500ms pause-all server all for 500ms"},
		{Name: "readonly-server", Help: "the server becomes a read-only replica under its clients", Least: least,
			Schedule: "every 2s from 500ms readonly server any for 700ms"},
		{Name: "busy-server", Help: "somebody's script does not end: BUSY", NoDuplicates: true, Least: least,
			Schedule: "every 2s from 500ms busy server any for 700ms"},
		{Name: "misconf-server", Help: "the server cannot write its snapshot: MISCONF", NoDuplicates: true, Least: least,
			Schedule: "every 2s from 500ms misconf server any for 700ms"},
		{Name: "loading-server", Help: "kill -9 of a server whose file takes long to load: LOADING", Setup: setupBigFile,
			Least: 12 * time.Second, Schedule: "every 5s from 1s crash server any for 100ms"},
		{Name: "step-clock", Help: "the clock of the server is set 5 s forward or back, and back again, and consumers are " +
			"killed", Setup: setupClock, Least: 12 * time.Second,
			Schedule: "every 4s from 1s step-clock server any with 5s for 1s; every 4s from 3s step-clock server any with -5s " +
				"for 1s; every 2s-3s kill consumer any; at 0s fail consumer all with 0.1 for 1h"},
		{Name: "power-cut", Help: "kill -9 of the server, whose file ends where it was synced a second ago, appendfsync " +
			"everysec: losses are counted", Setup: setupPower, MayForget: true, Least: 16 * time.Second,
			Schedule: "every 4s from 3500ms power-cut server any for 1300ms; every 8s from 500ms stop consumer all for " +
				"4500ms; at 0s fail consumer all with 0.1 for 1h"},
		{Name: "storm-after-crash", Help: "kill -9 of the server, to which 200 clients come back at once",
			Setup: setupManyClients, Clients: 200, Least: 12 * time.Second,
			Schedule: "every 5s from 3s crash server any for 500ms"},
		{Name: "foreign-keys", Help: "somebody else takes names of the topic's keys while they are empty: WRONGTYPE",
			Least: 10 * time.Second, Schedule: "every 500ms from 500ms usurp server any for 250ms; at 0s fail consumer all " +
				"with 0.2 for 1h"},
		{Name: "flush-all", Help: "FLUSHALL under load: what it costs is counted", MayForget: true, MayEnd: true,
			Least: least, Schedule: "at 2s flush-all server all"},
		{Name: "resp2", Help: "the protocol of Redis 5 and older, with connections that break", Setup: setupRESP2,
			Least: least,
			Schedule: "every 700ms-1300ms kill-clients server all; every 1s flush-scripts server all; every 500ms-900ms " +
				"reset-reply consumer any for 100ms; every 300ms-700ms reset-reply producer any for 100ms"},
		{Name: "flush-scripts", Help: "SCRIPT FLUSH 20 times a second", Schedule: "every 50ms flush-scripts server all",
			NoDuplicates: true},
		{Name: "kill-clients", Help: "CLIENT KILL storms", Least: least, Schedule: "every 50ms from 1s until 2s " +
			"kill-clients server all; every 700ms-1300ms from 2500ms kill-clients server all"},
		{Name: "oom", Help: "the server is out of memory, noeviction", Least: least,
			Schedule: "every 2s from 500ms oom server all for 1s"},
		{Name: "mix-server", Help: "servers and processes at once", Least: 15 * time.Second, Schedule: `
			every 3s-5s crash server any for 300ms; every 1s flush-scripts server all; every 2s-3s kill-clients server all
			every 2s-3s kill consumer any; every 2s-3s kill producer any; every 1s-2s term consumer any
			every 1s-2s reset-reply producer any for 100ms; every 1s fail consumer all with 0.1 for 1s`},
		{Name: "failover", Help: "kill -9 of the primary at level replicated(1)", Level: driver.Replicated(1),
			Least: 20 * time.Second, Schedule: "every 9s from 1s failover for 3s"},
		{Name: "failover-unreplicated", Help: "the same at the level of a single server: losses are counted", MayForget: true,
			Least: 20 * time.Second, Schedule: "every 9s from 1s failover for 3s"},
		{Name: "failover-often", Help: "twenty times in a row", Level: driver.Replicated(1), InARow: true,
			Least: 225 * time.Second, Schedule: "every 11s from 1s until 215s failover for 3s"},
		{Name: "freeze-primary", Help: "SIGSTOP of the primary beyond the lease, at level replicated(1): another takes " +
			"over, and it comes back as one that was replaced", Level: driver.Replicated(1), Least: 20 * time.Second,
			Schedule: "every 11s from 1s freeze-primary for 4s"},
		{Name: "switch-over", Help: "the primary hands over while it is used, at level replicated(1)",
			Level: driver.Replicated(1), Least: 20 * time.Second, Schedule: "every 4s from 1s switch for 1s"},
		{Name: "switch-over-unreplicated", Help: "the same at the level of a single server: losses are counted",
			MayForget: true, Least: 20 * time.Second, Schedule: "every 4s from 1s switch for 1s"},
		{Name: "partition", Help: "the primary is cut off from the other servers, at level replicated(1): clients see both " +
			"sides", Setup: setupNamespaces, Level: driver.Replicated(1), Least: 20 * time.Second,
			Schedule: "every 9s from 1s partition for 4s"},
		{Name: "partition-unreplicated", Help: "the same at the level of a single server: losses are counted",
			Setup: setupNamespaces, MayForget: true, Least: 20 * time.Second, Schedule: "every 9s from 1s partition for 4s"},
		{Name: "migrate", Help: "the slot of the topic moves, and stays half-way for a while", Least: 10 * time.Second,
			Schedule: "every 3s from 1s migrate for 1s"},
	}
}
