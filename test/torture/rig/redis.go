package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// redisServers are one server, or a set in which one takes over from another.
type redisServers struct {
	nodes []*redistest.Server
	set   set // nil for a single one

	clock    *redistest.Clock   // nil: that of the machine
	network  *redistest.Network // nil: nobody can be cut off from the others
	asleep   map[int]chan error // answers of DEBUG SLEEP
	limits   map[int]*limits    // of each server that has had some
	old      *redistest.Server  // that is being replaced
	moving   *migration
	squatter squatter
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

// streams says that the driver under test is that of Redis Streams. Its servers suffer what those of the other one do.
func (o Options) streams() bool { return strings.HasPrefix(o.Broker, "redisstream") }

// topicKey is one of the keys of our topic: of its first shard, or of its first partition.
func (o Options) topicKey() string {
	if o.streams() {
		return "{ferry/" + Topic + "/0}:topic"
	}
	return "{ferry:" + Topic + ":0}:topic"
}

// redisOptions are those of every server: nothing is lost when its process dies.
func redisOptions(o Options) redistest.Options {
	fsync := "everysec"
	if o.Fault.Setup == setupAlways {
		fsync = "always"
	}
	options := redistest.Options{AOF: fsync}
	if o.Fault.Setup == setupPower { // so that its file only ever grows
		options.Config = append(options.Config, "auto-aof-rewrite-percentage 0")
	}
	return options
}

func openRedis(ctx context.Context, o Options) (stage, error) {
	return openServers(ctx, o, func(dir string) (*redisServers, backend, error) {
		options := redisOptions(o)
		var err error
		if o.Fault.Setup == setupClock {
			if options.Clock, err = redistest.NewClock(ctx, dir); err != nil {
				return nil, backend{}, err
			}
		}
		s, err := redistest.StartSingle(dir, options)
		if err == nil && o.Fault.Setup == setupBigFile {
			err = fatten(ctx, s)
		}
		if err != nil {
			return nil, backend{}, err
		}
		return &redisServers{nodes: []*redistest.Server{s}, clock: options.Clock}, backend{url: s.URL(), close: s.Close}, nil
	})
}

// openServers starts servers in a directory that goes with them.
func openServers(ctx context.Context, o Options, start func(dir string) (*redisServers, backend, error)) (stage,
	error) {
	dir, err := os.MkdirTemp("", "ferry-torture-redis-")
	if err != nil {
		return nil, err
	}
	s, b, err := start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.asleep, s.limits = map[int]chan error{}, map[int]*limits{}
	b.servers = s
	if o.streams() {
		b.url = strings.Replace(b.url, "redis", "redisstream", 1)
	}
	if o.Fault.Setup == setupRESP2 {
		b.url += "?protocol=2"
	}
	end := b.close
	b.close = func() {
		end()
		_ = os.RemoveAll(dir)
	}
	return openProcesses(ctx, o, b)
}

func (s *redisServers) begin(step schedule.Step, number int) (string, error) {
	switch step.Action {
	case "failover", "switch", "partition", history.FreezePrimary, "migrate":
		return "", s.beginTakeOver(step)
	}
	n := s.nodes[number-1]
	if step.Action == "crash" {
		behind := postponed(n)
		n.Kill()
		return behind, nil
	}
	if step.Action == history.PowerCut {
		return "", cutPower(n)
	}
	if s.limits[number] == nil {
		s.limits[number] = &limits{}
	}
	if known, err := s.limits[number].begin(step.Action, step.With, n.PID, stopper(n.Stop, n.Continue)); known {
		return "", err
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
	case "pause-all":
		_, err = n.Command("CLIENT", "PAUSE", strconv.FormatInt(step.For.Milliseconds(), 10), "ALL")
	case "readonly":
		_, err = n.Command("REPLICAOF", "127.0.0.1", "1") // where nobody is: it keeps its data
	case "flush-all":
		_, err = n.Command("FLUSHALL")
	case "usurp":
		err = s.squatter.usurp(n, step.At)
	case history.StepClock:
		err = s.stepClock(step.With)
	case "oom":
		err = fillUp(n)
	case busy:
		s.asleep[number], err = occupy(n)
	case misconf:
		err = spoilSnapshot(n)
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
	case "failover", "switch", "partition", history.FreezePrimary, "migrate":
		return s.endTakeOver(ctx, step)
	}
	n := s.nodes[number-1]
	if l := s.limits[number]; l != nil {
		if known, err := l.end(step.Action); known {
			return err
		}
	}
	var err error
	switch step.Action {
	case "crash", history.PowerCut:
		return n.Restart()
	case history.StepClock:
		err = s.stepClock("0s")
	case "freeze":
		err = n.Continue()
	case "sleep":
		err = <-s.asleep[number]
	case "oom":
		_, err = n.Command("CONFIG", "SET", "maxmemory", "0")
	case "readonly":
		_, err = n.Command("REPLICAOF", "NO", "ONE")
	case busy:
		err = free(n, s.asleep[number])
	case misconf:
		err = mendSnapshot(n)
	case "usurp":
		err = s.squatter.leave(n)
	}
	if !n.Running() {
		return nil
	}
	return err
}
