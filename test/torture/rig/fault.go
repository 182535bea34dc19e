// Package rig puts a torture run together: processes, load, faults by schedule, drain, audit, verdict.
package rig

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// Fault is a named schedule with what it may cost.
type Fault struct {
	Name string
	Help string
	// Schedule in the language of package schedule; LEASE stands for the lease of the run.
	Schedule string
	// NoDuplicates says that no message may be handled twice, but for retries.
	NoDuplicates bool
	// MayForget says that what was acknowledged just before a fail-over may be lost: it is counted.
	MayForget bool
	// MayEnd says that processes may end with an error, as a supervisor would see it: they are started again.
	MayEnd bool
	// Consumers is how many there are at least. Defaults to what the run says.
	Consumers int
	// Clients is how many brokers the consumers open together, or the producers, see pace. Defaults to one each.
	Clients int
	// Setup is how the broker is set up for it. Defaults to its usual one.
	Setup string
	// Level is asked for with each publish. Defaults to the broker's own.
	Level driver.Durability
	// Least is the shortest load in which it shows anything. Defaults to 3 s.
	Least time.Duration
	// InARow says that all of Least is one run, on the same servers, and not split into rounds.
	InARow bool
	// Leaves is a problem that an audit may find afterwards, and mends: what older processes do not know of and so leave.
	Leaves string
}

// Setups of brokers.
const (
	setupEverySecond  = "appendfsync everysec"
	setupGateway      = "a gateway"
	setupAlways       = "appendfsync always"
	setupInterval     = "sync=50ms"
	setupSmallDisk    = "small disk"
	setupFreezable    = "disk that can stall"
	setupBigFile      = "big file"
	setupClock        = "clock that can be set"
	setupManyClients  = "many clients"
	setupOlder        = "processes of an older commit"
	setupLittleMemory = "little memory"
	setupPower        = "power that can be cut"
	setupRESP2        = "protocol=2"
	setupNamespaces   = "network namespaces"
	setupKept         = "settled messages are kept"
	setupSessions     = "leases of whole partitions"
)

// Faults returns all, in order. Which of them a broker can have follows from its actions, see FaultsFor.
func Faults() []Fault {
	return slices.Concat(processFaults(), networkFaults(), serverFaults(), gatewayFaults(), kafkaFaults(), appFaults())
}

// processFaults are those of processes and handlers.
func processFaults() []Fault {
	return []Fault{
		{Name: "none", Help: "load only", NoDuplicates: true},
		{Name: "kill-consumer", Help: "kill -9 of consumers", Schedule: "every 700ms-1300ms kill consumer any"},
		{Name: "kill-producer", Help: "kill -9 of producers", Schedule: "every 300ms-900ms kill producer any",
			NoDuplicates: true},
		{Name: "stop-consumer", Help: "SIGSTOP of consumers beyond their lease",
			Schedule: "every 1200ms from 200ms stop consumer any for LEASE*1.2"},
		{Name: "stop-producer", Help: "SIGSTOP of producers", Schedule: "every 500ms-900ms stop producer any for 300ms",
			NoDuplicates: true},
		{Name: "term-consumer", Help: "SIGTERM of consumers under load", Schedule: "every 200ms-500ms term consumer any",
			NoDuplicates: true},
		{Name: "kill-while-draining", Help: "SIGTERM of consumers, and kill -9 before they have given everything back",
			Schedule: "every 700ms-1300ms term-kill consumer any with 20ms; at 0s slow consumer all with 300ms for 1h"},
		{Name: "term-twice", Help: "SIGTERM of consumers, and again while they drain, which changes nothing",
			NoDuplicates: true, Schedule: "every 300ms-600ms term-twice consumer any with 10ms; at 0s slow consumer all with " +
				"300ms for 1h"},
		{Name: "term-producer", Help: "SIGTERM of producers under load", Schedule: "every 200ms-500ms term producer any",
			NoDuplicates: true},
		{Name: "join-leave", Help: "twenty consumers come and go for two minutes", Consumers: 20, Least: 2 * time.Minute,
			Schedule: "every 200ms-900ms term consumer any; every 2s-4s kill consumer any; every 5s-9s stop consumer any for " +
				"LEASE*1.2"},
		{Name: "reset-group", Help: "a group is set back to the beginning under load", Setup: setupKept,
			Least: 8 * time.Second, Schedule: "every 2500ms from 2s until 6s reset with billing"},
		{Name: "trim", Help: "the log is trimmed while it is read, and readers are killed", Setup: setupKept,
			Least:    8 * time.Second,
			Schedule: "every 150ms-400ms trim with 40; every 1500ms-2500ms kill consumer any"},
		{Name: "upgrade", Help: "processes of an older commit are replaced one by one, with its data and among the others",
			Setup: setupOlder, Least: 14 * time.Second, Leaves: "lost leases are known of a message that is gone",
			Schedule: `every 1s fail consumer all with 0.2 for 1s; at 3s term consumer 1; at 5s kill consumer 2
				at 7s term producer 1; at 8s kill producer 2; at 10s term consumer 3`},
		{Name: "slow-handler", Help: "handlers that need longer than their lease",
			Schedule: "at 100ms slow consumer all with LEASE*1.5 for 1h", NoDuplicates: true},
		{Name: "fail-handler", Help: "handlers that fail", Schedule: "at 0s fail consumer all with 0.3 for 1h",
			NoDuplicates: true},
		{Name: "panic-handler", Help: "handlers that panic", Schedule: "at 0s panic consumer all with 0.2 for 1h",
			NoDuplicates: true},
		{Name: "lose-renewals", Help: "handlers that exceed their lease, unrenewed", Schedule: "at 0s slow consumer all " +
			"with LEASE*1.5 for 1h; every 1s from 100ms lose-renewals consumer any for LEASE*2"},
		{Name: "little-cpu", Help: "processes that run for a tenth of the time, and keep their leases", NoDuplicates: true,
			Least: 9 * time.Second, Schedule: "at 0s slow consumer all with LEASE*1.5 for 1h; every 4s from 500ms " +
				"throttle-cpu consumer any with 0.1 for 3s; every 4s from 1s throttle-cpu producer any with 0.1 for 2s"},
		{Name: "little-memory", Help: "processes with a limit of 16 MiB for their heap, which may not take 96 in all, and " +
			"failing handlers", Setup: setupLittleMemory, NoDuplicates: true, Least: 6 * time.Second,
			Schedule: "at 0s fail consumer all with 0.2 for 1h"},
		{Name: "cut", Help: "connections cut", Schedule: "every 800ms-1500ms cut consumer any for 300ms; every 500ms-900ms " +
			"cut producer any for 200ms; at 900ms cut consumer 1 for LEASE*1.5"},
		{Name: "lose-replies", Help: "requests carried out whose reply is lost, or late", Schedule: "every 700ms-1200ms " +
			"lose-replies consumer any for 200ms; every 400ms-900ms lose-replies producer any for 150ms"},
		{Name: "clock", Help: "client clocks an hour off the broker's", Schedule: "at 0s clock consumer 1 with 1h for 1h; " +
			"at 0s clock consumer 2 with -1h for 1h; at 0s fail consumer all with 0.2 for 1h", NoDuplicates: true},
		{Name: "mix", Help: "a bit of everything", Schedule: `
			every 1500ms-2500ms kill consumer any; every 900ms-2s kill producer any
			every 2s from 400ms stop consumer any for LEASE*1.2
			every 700ms-1500ms term consumer any; at 0s fail consumer all with 0.1 for 1h
			at 0s panic consumer any with 0.1 for 1h; every 1s-2s cut consumer any for 300ms
			every 1s-2s lose-replies consumer any for 100ms; every 1s-2s lose-replies producer any for 100ms
			every 3s clock consumer any with 1h for 1s`},
	}
}

// networkFaults need a proxy between the processes and the servers.
func networkFaults() []Fault {
	return []Fault{
		{Name: "blackhole", Help: "nothing passes, and nobody is told", Least: 8 * time.Second,
			Schedule: "every 2s-3s from 500ms blackhole consumer any for LEASE*1.5; every 2s-3s from 1s blackhole producer " +
				"any for 1500ms"},
		{Name: "latency", Help: "every packet 50 to 200 ms late", Least: 5 * time.Second,
			Schedule: "every 1s-2s latency consumer any with 200ms for 1s; every 1s-2s latency producer any with 50ms for 1s"},
		{Name: "low-bandwidth", Help: "100 KiB a second and connection", Least: 6 * time.Second,
			Schedule: "every 3s from 500ms throttle consumer any with 10ms for 2s; every 3s from 1s throttle producer any " +
				"with 10ms for 2s"},
		{Name: "lose-requests", Help: "nothing reaches the server for a while", Least: 5 * time.Second,
			Schedule: "every 700ms-1200ms lose-requests consumer any for 500ms; every 700ms-1200ms lose-requests producer any " +
				"for 500ms"},
		{Name: "reset-reply", Help: "connections reset in the middle of a reply: the request was carried out",
			Least: 5 * time.Second,
			Schedule: "every 500ms-900ms reset-reply consumer any for 100ms; every 300ms-700ms reset-reply producer any for " +
				"100ms"},
		{Name: "few-files", Help: "connections break, and for a while a process can open no other: EMFILE",
			Least: 9 * time.Second,
			Schedule: `every 4s from 500ms limit-files consumer all with 3 for 1500ms
				every 4s from 700ms cut consumer all for 300ms
			every 4s from 2500ms limit-files producer all with 3 for 1s; every 4s from 2700ms cut producer all for 200ms`},
		{Name: "few-files-server", Help: "connections break, and the server can accept no other for a while",
			Least: 9 * time.Second,
			Schedule: "every 4s from 500ms limit-files server any with 3 for 1500ms; every 4s from 700ms cut consumer all for " +
				"300ms; every 4s from 700ms cut producer all for 300ms"},
		{Name: "little-cpu-server", Help: "a server that runs for a fifth of the time", Least: 9 * time.Second,
			Schedule: "every 4s from 500ms throttle-cpu server any with 0.2 for 2500ms"},
		{Name: "reconnect-storm", Help: "200 clients lose their connections at once, and come back at once",
			Setup: setupManyClients, Clients: 200, Least: 12 * time.Second,
			Schedule: "every 4s from 3s cut consumer all for 300ms; every 4s from 3s cut producer all for 300ms"},
		{Name: "late-replies", Help: "replies that come after their client has given up", Least: 10 * time.Second,
			Schedule: "every 4s from 500ms lose-replies producer any for 3500ms; every 4s from 1s lose-replies consumer any " +
				"for 3500ms"},
	}
}

// appFaults are those of a process that owns its broker.
func appFaults() []Fault {
	return []Fault{
		{Name: "kill-app", Help: "kill -9 of the process with everything in it", Least: time.Minute,
			Schedule: "every 150ms-900ms from 300ms kill app 1"},
		{Name: "kill-app-interval", Help: "the same with a store that syncs at intervals", Setup: setupInterval,
			Least: 20 * time.Second, Schedule: "every 150ms-900ms from 300ms kill app 1"},
		{Name: "stop-app", Help: "SIGSTOP of the process beyond its leases", Least: 10 * time.Second,
			Schedule: "every 4s from 1s stop app 1 for LEASE*1.2"},
		{Name: "term-app", Help: "SIGTERM of the process under load", Least: 5 * time.Second,
			Schedule: "every 700ms-1300ms term app 1", NoDuplicates: true},
		{Name: "kill-app-while-draining", Help: "SIGTERM, and kill -9 before it has ended", Least: 10 * time.Second,
			Schedule: "every 900ms-1500ms term-kill app 1 with 20ms"},
		{Name: "term-app-twice", Help: "SIGTERM of the process, and again while it drains, which changes nothing",
			Least: 5 * time.Second, Schedule: "every 700ms-1300ms term-twice app 1 with 10ms", NoDuplicates: true},
		{Name: "little-cpu-app", Help: "the process runs for a tenth of the time", Least: 9 * time.Second,
			Schedule: "every 4s from 500ms throttle-cpu app 1 with 0.1 for 3s"},
		{Name: "few-files-app", Help: "the process can open no file for a while, on which its store stops, and is killed: " +
			"EMFILE", Least: 10 * time.Second,
			Schedule: "every 4s from 500ms until 6s limit-files app 1 with 3 for 1s; every 4s from 2500ms until 8s kill app 1"},
		{Name: "upgrade-app", Help: "the process of an older commit is replaced, with its data", Setup: setupOlder,
			Least:    8 * time.Second,
			Schedule: "every 1s fail consumer all with 0.2 for 1s; at 3s kill app 1; at 6s term app 1"},
		{Name: "full-disk", Help: "the reserve of the disk is reached", Setup: setupSmallDisk, Least: 8 * time.Second,
			Schedule: "every 3s from 1s fill with 8000000 for 1500ms; every 2s-3s kill app 1"},
		{Name: "no-space", Help: "not a byte is left on the disk", Setup: setupSmallDisk, Least: 10 * time.Second,
			Schedule: "every 4s from 1s fill with 0 for 1500ms; every 4s from 3s kill app 1"},
		{Name: "stalled-disk", Help: "the disk stands still: no write and no fsync returns", Setup: setupFreezable,
			Least:    10 * time.Second,
			Schedule: "every 2s from 1s until 5s stall-disk for 700ms; at 6s stall-disk for LEASE*1.5"},
		{Name: "mix-app", Help: "a bit of everything", Least: 15 * time.Second,
			Schedule: `every 1s-3s kill app 1; every 3s-5s term app 1; every 5s from 2s stop app 1 for LEASE*1.2
			every 1s fail consumer all with 0.1 for 1s; every 3s slow consumer all with LEASE*1.5 for 1s`},
	}
}

// Longest is the longest load of one run of the fault.
func (f Fault) Longest() time.Duration {
	if f.InARow {
		return max(Round, f.Least)
	}
	return Round
}

// clauses reads the schedule of a fault for a lease.
func (f Fault) clauses(lease time.Duration, actions schedule.Actions) ([]schedule.Clause, error) {
	text := f.Schedule
	for _, factor := range []float64{1.2, 1.5, 2} {
		text = strings.ReplaceAll(text, fmt.Sprintf("LEASE*%v", factor), time.Duration(float64(lease)*factor).String())
	}
	return schedule.Parse(text, actions)
}
