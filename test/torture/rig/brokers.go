package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// broker is one that can be tortured: what can be done to it, and how it is set up.
type broker struct {
	actions schedule.Actions
	// roles are what processes there are, in the order of their start.
	roles []string
	// nodes are how many servers can be named.
	nodes int
	// setups are those of Fault.Setup that it has.
	setups []string
	// inside says that all of it lives in the process of the harness.
	inside bool
	// owned says that one process owns it, with producers and consumers in it.
	owned bool
	// leasesDie says that leases are in the memory of a server that faults kill.
	leasesDie bool
	// pace is how slow it is. Zero fields mean what Options says.
	pace pace
	open func(context.Context, Options) (stage, error)
}

// pace is how soon things happen at a broker whose leases are not of single messages.
type pace struct {
	// lease is the shortest, and the usual one.
	lease time.Duration
	// recoverIn and least are as in Options and Fault.
	recoverIn, least time.Duration
	// heartbeat, commits and clock are as in history.Run.
	heartbeat, commits, clock time.Duration
	// crowd is the role of many clients: where a member more than there are partitions is of no use, producers.
	crowd string
}

// brokers are those that can be tortured by name.
func brokers() map[string]broker {
	processes := together(handlers(), seams(), signals(both...), limitActions(both...), network())
	single := broker{
		actions: together(processes, serverActions(), crashActions(), limitActions(consumer, producer, server)), roles: both,
		nodes: 1,
		setups: []string{setupEverySecond, setupAlways, setupBigFile, setupClock, setupLittleMemory, setupManyClients,
			setupOlder, setupPower, setupRESP2}, open: openRedis,
	}
	sentinel := broker{
		actions: together(processes, serverActions(), failoverActions()), roles: both, nodes: 2,
		setups: []string{setupEverySecond, setupLittleMemory, setupManyClients, setupOlder, setupRESP2, setupNamespaces},
		open:   openSentinel,
	}
	kafka := broker{
		actions: together(processes, brokerActions(), operatorActions(), limitActions(consumer, producer, server)),
		roles:   both, nodes: 1, setups: []string{setupSessions, setupKept, setupLittleMemory, setupManyClients, setupOlder,
			setupSmallDisk}, open: openKafka(1),
		pace: pace{lease: kafkaSession, recoverIn: kafkaRecovers, least: kafkaLeast, heartbeat: kafkaHeartbeat,
			commits: kafkaCommits, clock: kafkaClock, crowd: producer},
	}
	kafkas := kafka
	kafkas.nodes, kafkas.open = 3, openKafka(3)
	kafkas.actions = together(kafka.actions, takeOverActions(), partitionActions())
	kafkas.setups = []string{setupSessions, setupKept, setupLittleMemory, setupManyClients, setupOlder, setupNamespaces}
	kafka.actions = together(kafka.actions, loneActions())
	cluster := sentinel // what is said of the others holds for it too
	cluster.nodes, cluster.open = 6, openCluster
	cluster.actions = together(cluster.actions, migrationActions())
	remote := broker{actions: together(processes, gatewayActions()), roles: both, nodes: 1, setups: []string{setupGateway},
		open: openGateway(redisBehind)}
	remoteDisk := remote
	remoteDisk.open, remoteDisk.leasesDie = openGateway(diskBehind), true
	return map[string]broker{
		"memory": {
			actions: together(handlers(), seams(), signals(both...), calls(), operatorActions()), roles: both, inside: true,
			setups: []string{setupKept},
			open: func(ctx context.Context, o Options) (stage, error) {
				d, err := memory.New(ctx, memory.Options{})
				if err != nil {
					return nil, err
				}
				return newLocalStage(d, o), nil
			},
		},
		"disk": {
			actions: together(handlers(), signals(app), limitActions(app), diskActions()), roles: []string{app},
			setups: []string{setupInterval, setupOlder, setupSmallDisk, setupFreezable}, owned: true, open: openApps,
		},
		"redis": single, "redis-sentinel": sentinel, "redis-cluster": cluster,
		"redisstream": single.asLog(), "redisstream-sentinel": sentinel.asLog(), "redisstream-cluster": cluster.asLog(),
		"kafka": kafka, "kafka-cluster": kafkas,
		"remote": remote, "remote-disk": remoteDisk,
	}
}

// asLog is the same for the driver that keeps a log: its groups can be reset, and it can be trimmed.
func (b broker) asLog() broker {
	b.actions = together(b.actions, operatorActions(), trimActions())
	b.setups = append(slices.Clone(b.setups), setupKept)
	b.pace.crowd = producer
	return b
}

// count says how many there are of each role that a schedule may name.
func (b broker) count(o Options) map[string]int {
	if b.owned {
		return map[string]int{app: 1, consumer: 1}
	}
	return map[string]int{consumer: max(o.Consumers, o.Fault.Consumers), producer: o.Producers, server: b.nodes}
}

// Brokers returns the names of the brokers that can be tortured.
func Brokers() []string { return slices.Sorted(maps.Keys(brokers())) }

// lookup returns a broker by its name, or by the URL of one that runs already.
func lookup(name string) (broker, error) {
	if b, ok := brokers()[name]; ok {
		return b, nil
	}
	scheme, _, isURL := strings.Cut(name, "://")
	if !isURL || scheme == "memory" || scheme == "disk" {
		return broker{}, fmt.Errorf("no broker %q; there are %s, or the URL of a server that runs", name,
			strings.Join(Brokers(), ", "))
	}
	actions := together(handlers(), seams(), signals(both...))
	if !strings.Contains(name, ",") { // otherwise its addresses are learned from the servers, past any proxy
		actions = together(actions, network())
	}
	b := broker{actions: actions, roles: both, open: openURL}
	if strings.HasPrefix(scheme, "kafka") {
		b.pace = brokers()["kafka"].pace
	}
	return b, nil
}

// Spawns says whether a broker is tortured with processes of their own, see Build.
func Spawns(name string) bool {
	b, err := lookup(name)
	return err == nil && !b.inside
}

// FaultsFor returns the faults that a broker must survive, and why each of the others is not for it.
func FaultsFor(name string) (fit []Fault, misfits map[string]string, err error) {
	b, err := lookup(name)
	if err != nil {
		return nil, nil, err
	}
	misfits = map[string]string{}
	for _, f := range Faults() {
		if why := b.misfit(f); why != "" {
			misfits[f.Name] = why
			continue
		}
		f.Least = max(f.Least, b.pace.least)
		fit = append(fit, f)
	}
	return fit, misfits, nil
}

// misfit says why a fault is not for this broker, or nothing.
func (b broker) misfit(f Fault) string {
	if f.Setup != "" && !slices.Contains(b.setups, f.Setup) {
		return fmt.Sprintf("no setup %q", f.Setup)
	}
	_, err := f.clauses(Options{}.withDefaults(b.pace).Lease, b.actions)
	var lacks *schedule.LacksError
	switch {
	case errors.As(err, &lacks):
		return "it has no " + lacks.What
	case err != nil:
		return err.Error()
	}
	return ""
}
