package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// redisServers are one server, or a set in which one takes over from another.
type redisServers struct {
	nodes []*redistest.Server
	set   set // nil for a single one

	asleep map[int]chan error // answers of DEBUG SLEEP
	old    *redistest.Server  // that is being replaced
	moving *migration
}

// set is what Sentinel and Cluster have in common.
type set interface {
	// primary is the server that has our topic.
	primary() (*redistest.Server, error)
	// next waits until another than old has it.
	next(ctx context.Context, old *redistest.Server) error
	// switchOver asks for a fail-over while old still works.
	switchOver(old *redistest.Server) error
	// Ready waits for full strength.
	Ready(ctx context.Context) error
}

// serverActions can be done to any server, and make nobody take over.
func serverActions() schedule.Actions {
	return schedule.Actions{
		"flush-scripts": {Roles: []string{server}, Help: "SCRIPT FLUSH"},
		"kill-clients":  {Roles: []string{server}, Help: "CLIENT KILL of all connections"},
		"pause":         {Roles: []string{server}, Lasting: true, Help: "CLIENT PAUSE of all writes"},
		"oom":           {Roles: []string{server}, Lasting: true, Help: "maxmemory is half of what is used, nothing is evicted"},
	}
}

// crashActions are for a server that nobody takes over from.
func crashActions() schedule.Actions {
	return schedule.Actions{
		"crash":  {Roles: []string{server}, Lasting: true, Help: "kill -9, then started again with its files"},
		"freeze": {Roles: []string{server}, Lasting: true, Help: "SIGSTOP, then SIGCONT"},
		"sleep":  {Roles: []string{server}, Lasting: true, Help: "DEBUG SLEEP"},
	}
}

// failoverActions are for sets.
func failoverActions() schedule.Actions {
	return schedule.Actions{
		"failover": {Lasting: true, Help: "kill -9 of the primary; another takes over, and it comes back as a replica"},
		"switch":   {Lasting: true, Help: "the primary hands over while it is used"},
	}
}

// serverFaults are those of Redis servers.
func serverFaults() []Fault {
	const least = 6 * time.Second
	return []Fault{
		{Name: "restart-server", Help: "kill -9 of the server, appendfsync everysec", Setup: setupEverySecond, Least: 10 * time.Second, Schedule: "every 1500ms-2500ms from 700ms crash server any for 300ms"},
		{Name: "restart-server-always", Help: "kill -9 of the server, appendfsync always", Setup: setupAlways, Least: 10 * time.Second, Schedule: "every 1500ms-2500ms from 700ms crash server any for 300ms"},
		{Name: "freeze-server", Help: "SIGSTOP of the server, once beyond the lease", Least: 8 * time.Second, Schedule: "every 2s from 500ms until 4s freeze server any for 700ms; at 4s freeze server any for LEASE*1.2"},
		{Name: "sleep-server", Help: "DEBUG SLEEP", Least: least, Schedule: "every 1s-2s sleep server any for 700ms"},
		{Name: "pause-server", Help: "CLIENT PAUSE", Least: least, Schedule: "every 1s-2s pause server all for 500ms"},
		{Name: "flush-scripts", Help: "SCRIPT FLUSH 20 times a second", Schedule: "every 50ms flush-scripts server all", NoDuplicates: true},
		{Name: "kill-clients", Help: "CLIENT KILL storms", Least: least, Schedule: "every 50ms from 1s until 2s kill-clients server all; every 700ms-1300ms from 2500ms kill-clients server all"},
		{Name: "oom", Help: "the server is out of memory, noeviction", Least: least, Schedule: "every 2s from 500ms oom server all for 1s"},
		{Name: "mix-server", Help: "servers and processes at once", Least: 15 * time.Second, Schedule: `every 3s-5s crash server any for 300ms; every 1s flush-scripts server all; every 2s-3s kill-clients server all
			every 2s-3s kill consumer any; every 2s-3s kill producer any; every 1s-2s term consumer any; every 1s-2s reset-reply producer any for 100ms; every 1s fail consumer all with 0.1 for 1s`},
		{Name: "failover", Help: "kill -9 of the primary at level replicated(1)", Level: driver.Replicated(1), Least: 20 * time.Second, Schedule: "every 9s from 1s failover for 3s"},
		{Name: "failover-unreplicated", Help: "the same at the level of a single server: losses are counted", MayForget: true, Least: 20 * time.Second, Schedule: "every 9s from 1s failover for 3s"},
		{Name: "switch-over", Help: "the primary hands over while it is used, at level replicated(1)", Level: driver.Replicated(1), Least: 20 * time.Second, Schedule: "every 4s from 1s switch for 1s"},
		{Name: "switch-over-unreplicated", Help: "the same at the level of a single server: losses are counted", MayForget: true, Least: 20 * time.Second, Schedule: "every 4s from 1s switch for 1s"},
		{Name: "migrate", Help: "the slot of the topic moves, and stays half-way for a while", Least: 10 * time.Second, Schedule: "every 3s from 1s migrate for 1s"},
	}
}

// redisOptions are those of every server: nothing is lost when its process dies.
func redisOptions(o Options) redistest.Options {
	fsync := "everysec"
	if o.Fault.Setup == setupAlways {
		fsync = "always"
	}
	return redistest.Options{AOF: fsync}
}

func openRedis(ctx context.Context, o Options) (stage, error) {
	return openServers(ctx, o, func(dir string) (*redisServers, backend, error) {
		s, err := redistest.StartSingle(dir, redisOptions(o))
		if err != nil {
			return nil, backend{}, err
		}
		return &redisServers{nodes: []*redistest.Server{s}}, backend{url: s.URL(), close: s.Close}, nil
	})
}

// openServers starts servers in a directory that goes with them.
func openServers(ctx context.Context, o Options, start func(dir string) (*redisServers, backend, error)) (stage, error) {
	dir, err := os.MkdirTemp("", "ferry-torture-redis-")
	if err != nil {
		return nil, err
	}
	s, b, err := start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.asleep = map[int]chan error{}
	b.servers = s
	end := b.close
	b.close = func() {
		end()
		_ = os.RemoveAll(dir)
	}
	return openProcesses(ctx, o, b)
}

func (s *redisServers) begin(step schedule.Step, number int) (string, error) {
	switch step.Action {
	case "failover", "switch", "migrate":
		return "", s.beginTakeOver(step)
	}
	n := s.nodes[number-1]
	if step.Action == "crash" {
		behind := postponed(n)
		n.Kill()
		return behind, nil
	}
	err := s.harm(n, step, number)
	if !n.Running() { // down by another fault: there is nobody to be told
		return "", nil
	}
	return "", err
}

func (s *redisServers) harm(n *redistest.Server, step schedule.Step, number int) (err error) {
	switch step.Action {
	case "flush-scripts":
		_, err = n.Command("SCRIPT", "FLUSH")
	case "kill-clients":
		_, err = n.Command("CLIENT", "KILL", "TYPE", "normal")
		if err == nil {
			_, err = n.Command("CLIENT", "KILL", "TYPE", "pubsub")
		}
	case "pause":
		_, err = n.Command("CLIENT", "PAUSE", strconv.FormatInt(step.For.Milliseconds(), 10), "WRITE")
	case "oom":
		err = fillUp(n)
	case "freeze":
		err = n.Stop()
	case "sleep":
		s.asleep[number] = sleepFor(n, step.For)
	default:
		err = fmt.Errorf("a server cannot %s", step.Action)
	}
	return err
}

// postponed says whether a server may have acknowledged more than it has handed to the operating system. With
// appendfsync everysec it does so while an fsync is under way, and kill -9 then loses it.
func postponed(n *redistest.Server) string {
	reply, err := n.Command("INFO", "persistence")
	if err == nil && number(reply.Text, "aof_pending_bio_fsync") > 0 {
		return history.Unwritten
	}
	return ""
}

// number is a field of INFO, 0 when there is none.
func number(info, name string) int64 {
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	text, _, _ := strings.Cut(rest, "\r")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// fillUp leaves no room for what is there.
func fillUp(n *redistest.Server) error {
	reply, err := n.Command("INFO", "memory")
	if err != nil {
		return err
	}
	_, err = n.Command("CONFIG", "SET", "maxmemory", strconv.FormatInt(number(reply.Text, "used_memory")/2, 10))
	return err
}

func sleepFor(n *redistest.Server, d time.Duration) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.Command("DEBUG", "SLEEP", strconv.FormatFloat(d.Seconds(), 'f', 3, 64))
		done <- err
	}()
	return done
}

func (s *redisServers) end(ctx context.Context, step schedule.Step, number int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	switch step.Action {
	case "failover", "switch", "migrate":
		return s.endTakeOver(ctx, step)
	}
	n := s.nodes[number-1]
	var err error
	switch step.Action {
	case "crash":
		return n.Restart()
	case "freeze":
		err = n.Continue()
	case "sleep":
		err = <-s.asleep[number]
	case "oom":
		_, err = n.Command("CONFIG", "SET", "maxmemory", "0")
	}
	if !n.Running() {
		return nil
	}
	return err
}
