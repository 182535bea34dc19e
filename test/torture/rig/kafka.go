package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/netns"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// What Kafka promises in time: a consumer that died is out of its group after a session, which is also the shortest
// lease, and heartbeats come twelve times as often.
const (
	kafkaSession   = 6 * time.Second
	kafkaHeartbeat = kafkaSession / 12
	// kafkaCommits is how long after a claim or a settlement the next commit has surely told of it: every 200 ms, and
	// what a busy machine adds.
	kafkaCommits = 500 * time.Millisecond
	// kafkaClock is how well the brokers' clock is known: half of the way there and back, on a busy machine.
	kafkaClock = 100 * time.Millisecond
	// kafkaRecovers is how soon the clients of a broker that is back have found it again.
	kafkaRecovers = 5 * time.Second
	// kafkaLeast is the shortest load in which a group of which a member died goes on.
	kafkaLeast = 12 * time.Second
)

// kafkaServers are one broker, or three of which each is a controller too.
type kafkaServers struct {
	cluster *kafkatest.Cluster
	client  *kgo.Client
	admin   *kadm.Client
	down    map[string]*kafkatest.Broker // by the action that chose it
	limits  map[int]*limits              // of each broker that has had some
	disk    *smallDisk                   // nil: that of the machine
	network *netns.Network               // nil: they share the loopback address
}

// openKafka starts brokers in a directory that goes with them.
func openKafka(brokers int) func(context.Context, Options) (stage, error) {
	return func(ctx context.Context, o Options) (stage, error) {
		dir, err := os.MkdirTemp("", "ferry-torture-kafka-")
		if err != nil {
			return nil, err
		}
		s := &kafkaServers{down: map[string]*kafkatest.Broker{}, limits: map[int]*limits{}}
		clear := func() error { return errors.Join(s.unmount(), s.leave(), os.RemoveAll(dir)) }
		if o.Fault.Setup == setupNamespaces {
			if s.network, err = netns.New(); err != nil {
				return nil, errors.Join(err, os.RemoveAll(dir))
			}
		}
		if o.Fault.Setup == setupSmallDisk {
			if s.disk, err = mountSmallDisk(dir); err != nil {
				return nil, errors.Join(err, os.RemoveAll(dir))
			}
		}
		c, err := kafkatest.StartIn(s.network, dir, brokers)
		if err != nil {
			return nil, errors.Join(err, clear())
		}
		end := func() {
			c.Close()
			_ = clear()
		}
		s.cluster = c
		if s.client, err = kgo.NewClient(kgo.SeedBrokers(c.Addrs()...),
			kgo.MetadataMinAge(100*time.Millisecond)); err != nil {
			end()
			return nil, err
		}
		s.admin = kadm.NewClient(s.client)
		return openProcesses(ctx, o, backend{
			url: "kafka://" + strings.Join(c.Addrs(), ","), behind: c.Addrs(), servers: s,
			close: func() { s.client.Close(); end() },
		})
	}
}

func (s *kafkaServers) unmount() error {
	if s.disk == nil {
		return nil
	}
	return s.disk.unmount()
}

func (s *kafkaServers) leave() error {
	if s.network == nil {
		return nil
	}
	return s.network.Close()
}

func (s *kafkaServers) begin(step schedule.Step, number int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch step.Action {
	case addPartition:
		added, err := s.admin.CreatePartitions(ctx, 1, Topic)
		return "", errors.Join(err, added.Error())
	case history.FillBroker:
		if s.disk == nil {
			return "", errors.New("the broker has no disk of its own")
		}
		return s.disk.begin(schedule.Step{Action: "fill", With: "0"}, 0)
	case crashAll:
		return "", s.killAll()
	}
	b, err := s.victim(ctx, step.Action, number)
	if err != nil {
		return "", err
	}
	if s.limits[number] == nil {
		s.limits[number] = &limits{}
	}
	if known, err := s.limits[number].begin(step.Action, step.With, b.PID, stopper(b.Freeze, b.Thaw)); known {
		return "", err
	}
	s.down[key(step, number)] = b
	switch step.Action {
	case "freeze":
		return "", b.Freeze()
	case "part":
		return "", s.cluster.Part(b)
	case "restart":
		return "", b.Stop(ctx)
	}
	b.Kill()
	return "", nil
}

func (s *kafkaServers) end(ctx context.Context, step schedule.Step, number int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if l := s.limits[number]; l != nil {
		if known, err := l.end(step.Action); known {
			if b := s.cluster.Brokers[number-1]; b.Ended() {
				err = errors.Join(err, b.Restart())
			}
			return errors.Join(err, s.ready(ctx))
		}
	}
	b := s.down[key(step, number)]
	delete(s.down, key(step, number))
	var err error
	switch step.Action {
	case addPartition:
	case history.FillBroker:
		err = errors.Join(s.disk.end(ctx, schedule.Step{Action: "fill"}, 0), s.cluster.Brokers[0].Restart())
	case crashAll:
		err = s.restartAll()
	case "freeze":
		err = b.Thaw()
	case "part":
		err = s.cluster.Join(b)
	default:
		err = b.Restart()
	}
	if err != nil {
		return err
	}
	return s.ready(ctx)
}

// killAll kills every broker before one can notice that another is gone. A machine that did not let that happen did
// something else than was asked for.
func (s *kafkaServers) killAll() error {
	var err error
	began := time.Now()
	for _, b := range s.cluster.Brokers {
		err = errors.Join(err, syscall.Kill(b.PID(), syscall.SIGKILL))
	}
	if took := time.Since(began); took > killedWithin {
		err = errors.Join(err, fmt.Errorf("the brokers were killed within %v, not %v", took, killedWithin))
	}
	for _, b := range s.cluster.Brokers {
		b.Kill() // and wait until it is gone
	}
	return err
}

// restartAll starts every broker again, all at once: none gets ready before most of them are there.
func (s *kafkaServers) restartAll() error {
	errs := make([]error, len(s.cluster.Brokers))
	var starting sync.WaitGroup
	for i, b := range s.cluster.Brokers {
		starting.Go(func() { errs[i] = b.Restart() })
	}
	starting.Wait()
	return errors.Join(errs...)
}

func key(step schedule.Step, number int) string { return fmt.Sprint(step.Action, number) }

// victim is the broker that an action is about.
func (s *kafkaServers) victim(ctx context.Context, action string, number int) (*kafkatest.Broker, error) {
	id := int32(number)
	switch action {
	case "crash-controller":
		found, err := s.admin.BrokerMetadata(ctx)
		if err != nil {
			return nil, err
		}
		id = found.Controller
	case "crash-coordinator":
		found := s.admin.FindGroupCoordinators(ctx, Topic+":"+groups()[0])
		if err := found.Error(); err != nil {
			return nil, err
		}
		for _, c := range found {
			id = c.NodeID
		}
	case "crash-leader":
		found, err := s.admin.ListTopics(ctx, Topic)
		if err != nil {
			return nil, err
		}
		id = found[Topic].Partitions[0].Leader
	}
	if id < 1 || int(id) > len(s.cluster.Brokers) {
		return nil, fmt.Errorf("%s: there is no broker %d", action, id)
	}
	return s.cluster.Brokers[id-1], nil
}

// ready waits for full strength: every partition of every topic is led, and all its replicas follow.
func (s *kafkaServers) ready(ctx context.Context) error {
	for {
		topics, err := s.admin.ListTopicsWithInternal(ctx)
		if err == nil && !slices.ContainsFunc(topics.TopicsList(),
			func(t kadm.TopicPartitions) bool { return weak(topics[t.Topic]) }) {
			return nil
		}
		sleep(ctx, 50*time.Millisecond)
		if ctx.Err() != nil {
			return fmt.Errorf("the brokers do not come back: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// weak says that a partition has no leader, or that a replica is behind.
func weak(t kadm.TopicDetail) bool {
	for _, p := range t.Partitions {
		if p.Err != nil || p.Leader < 0 || len(p.ISR) < len(p.Replicas) {
			return true
		}
	}
	return t.Err != nil
}
