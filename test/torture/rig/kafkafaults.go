package rig

import (
	"time"

	"github.com/ferrymq/ferry/internal/netns"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// brokerActions can be done to one Kafka broker.
func brokerActions() schedule.Actions {
	return schedule.Actions{
		"crash":  {Roles: []string{server}, Lasting: true, Help: "kill -9, then started again with its files"},
		"freeze": {Roles: []string{server}, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
	}
}

// loneActions are for a single Kafka broker: what becomes of all when the only one has no room, and what somebody may
// do to a topic behind our back.
func loneActions() schedule.Actions {
	actions := schedule.Actions{
		addPartition: {Help: "a partition is added to the topic, past the driver"},
	}
	if len(diskActions()) > 0 {
		actions[history.FillBroker] = schedule.Action{Lasting: true,
			Help: "not a byte is left on its disk, on which it gives up; then there is room again, and it is started again"}
	}
	return actions
}

const addPartition = "add-partition"

// crashAll leaves nobody who knows what the others do not. killedWithin is shorter than any of them takes to notice.
const (
	crashAll     = "crash-all"
	killedWithin = 60 * time.Millisecond
)

// takeOverActions are for several Kafka brokers: what one did, another does.
func takeOverActions() schedule.Actions {
	return schedule.Actions{
		"restart": {Roles: []string{server}, Lasting: true, Help: "SIGTERM, then started again"},
		"crash-leader": {Lasting: true,
			Help: "kill -9 of the leader of the topic's first partition, then started again"},
		"crash-coordinator": {Lasting: true, Help: "kill -9 of the coordinator of the first group, then started again"},
		"crash-controller":  {Lasting: true, Help: "kill -9 of the active controller, then started again"},
		crashAll:            {Lasting: true, Help: "kill -9 of all brokers within 60 ms, then all are started again"},
	}
}

// partitionActions are empty where there are no network namespaces.
func partitionActions() schedule.Actions {
	if !netns.CanPartition() {
		return nil
	}
	return schedule.Actions{"part": {Roles: []string{server}, Lasting: true, Help: "the broker is cut off from the " +
		"others, not from its clients"}}
}

// kafkaFaults are those of Kafka brokers, and of groups whose leases are of whole partitions. With
// min.insync.replicas=2 of three nothing is forgotten by any of them.
func kafkaFaults() []Fault {
	const least = Round
	return []Fault{
		{Name: "kill-one", Help: "kill -9 of one consumer after the other: how soon do others take over?",
			Setup: setupSessions, Least: least, Schedule: "at 0s slow consumer all with 3s for 1h; every 9s from 2s until 12s " +
				"kill consumer any"},
		{Name: "zombie", Help: "SIGSTOP of consumers for a little less than their lease", Setup: setupSessions, Least: least,
			Schedule: "every 7s from 1s stop consumer any for 5500ms"},
		{Name: "kill-broker", Help: "kill -9 of any broker", Setup: setupSessions, Least: least,
			Schedule: "every 9s from 2s until 12s crash server any for 1s"},
		{Name: "kill-leader", Help: "kill -9 of the leader of a partition", Least: least,
			Schedule: "every 9s from 2s until 12s crash-leader for 3s"},
		{Name: "kill-coordinator", Help: "kill -9 of the coordinator of a group", Least: least,
			Schedule: "every 9s from 2s until 12s crash-coordinator for 3s"},
		{Name: "kill-controller", Help: "kill -9 of the active controller", Least: least,
			Schedule: "every 9s from 2s until 12s crash-controller for 3s"},
		{Name: "kill-brokers", Help: "kill -9 of all brokers within 60 ms: what they acknowledged is in their files",
			Least: 100 * time.Second, InARow: true, Schedule: "every 32s from 8s until 80s crash-all for 500ms"},
		{Name: "rolling-restart", Help: "SIGTERM of each broker in turn", Least: least,
			Schedule: "at 2s restart server 1 for 500ms; at 7s restart server 2 for 500ms; at 12s restart server 3 for 500ms"},
		{Name: "freeze-broker", Help: "SIGSTOP of a broker for longer than the others wait for it: it comes back as one " +
			"that was replaced", Least: least, Schedule: "at 2s freeze server any for 11s"},
		{Name: "part-broker", Help: "a broker is cut off from the others for longer than they wait for it, not from its " +
			"clients", Setup: setupNamespaces, Least: least, Schedule: "at 2s part server any for 11s"},
		{Name: "add-partitions", Help: "partitions are added to the topic, past the driver, and consumers come and go",
			Least:    least,
			Schedule: "at 3s add-partition; at 8s add-partition; every 2s-3s term consumer any; at 6s kill consumer any"},
		{Name: "broker-disk", Help: "the only broker runs out of disk", Setup: setupSmallDisk, Least: least,
			Schedule: "at 4s fill-broker for 4s"},
		{Name: "mix-broker", Help: "brokers and processes at once", Setup: setupSessions, Least: 2 * time.Minute, Schedule: `
			every 9s-12s from 3s crash server any for 2s
			every 7s-9s kill consumer any; every 3s-5s kill producer any; every 3s-6s term consumer any
			every 8s from 4s stop consumer any for LEASE*1.2
			every 1s-2s reset-reply producer any for 100ms; every 3s-5s cut consumer any for 300ms
			every 1s fail consumer all with 0.1 for 1s`},
	}
}
