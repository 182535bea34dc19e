package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

func openSentinel(ctx context.Context, o Options) (stage, error) {
	return openServers(ctx, o, func(dir string) (*redisServers, backend, error) {
		ro, leave, err := o.inNetwork()
		if err != nil {
			return nil, backend{}, err
		}
		s, err := redistest.StartSentinel(ctx, dir, ro)
		if err != nil {
			leave()
			return nil, backend{}, err
		}
		b := backend{url: s.URL(), behind: s.Addrs(), close: func() { s.Close(); leave() }}
		for _, n := range s.Nodes {
			b.behind = append(b.behind, n.Addr())
		}
		return &redisServers{nodes: s.Nodes, set: sentinelSet{s}, network: ro.Network}, b, nil
	})
}

func openCluster(ctx context.Context, o Options) (stage, error) {
	return openServers(ctx, o, func(dir string) (*redisServers, backend, error) {
		ro, leave, err := o.inNetwork()
		if err != nil {
			return nil, backend{}, err
		}
		s, err := redistest.StartCluster(ctx, dir, ro)
		if err != nil {
			leave()
			return nil, backend{}, err
		}
		b := backend{url: s.URL(), behind: s.Addrs(), close: func() { s.Close(); leave() }}
		return &redisServers{nodes: s.Nodes, set: clusterSet{s, o.topicKey()}, network: ro.Network}, b, nil
	})
}

// inNetwork returns the options of the servers of a set, and what to do when they are gone. For partitions they have a
// network of their own.
func (o Options) inNetwork() (ro redistest.Options, leave func(), err error) {
	ro, leave = redisOptions(o), func() {}
	if o.Fault.Setup == setupNamespaces {
		if ro.Network, err = redistest.NewNetwork(); err == nil {
			leave = func() { _ = ro.Network.Close() }
		}
	}
	return ro, leave, err
}

// sentinelSet is a set in which sentinels decide who is primary.
type sentinelSet struct{ *redistest.SentinelSet }

func (s sentinelSet) primary() (*redistest.Server, error) { return s.Primary() }

func (s sentinelSet) next(ctx context.Context, old *redistest.Server) error {
	_, err := s.NextPrimary(ctx, old)
	return err
}

func (s sentinelSet) switchOver(*redistest.Server) error {
	_, err := s.Sentinels[0].Command("SENTINEL", "FAILOVER", redistest.SentinelName)
	return err
}

// clusterSet is a set whose nodes decide among themselves.
type clusterSet struct {
	*redistest.ClusterSet
	key string // of our topic, by which the cluster tells where it is
}

func (s clusterSet) primary() (*redistest.Server, error) { return s.PrimaryOf(s.key) }

func (s clusterSet) next(ctx context.Context, old *redistest.Server) error {
	_, err := s.NextPrimaryOf(ctx, s.key, old)
	return err
}

// switchOver asks the replica of old: it takes over when it has everything.
func (s clusterSet) switchOver(old *redistest.Server) error {
	replica, err := s.replicaOf(old)
	if err != nil {
		return err
	}
	_, err = replica.Command("CLUSTER", "FAILOVER")
	return err
}

// beginTakeOver makes another node take over from the primary.
func (s *redisServers) beginTakeOver(step schedule.Step) (err error) {
	if s.old, err = s.set.primary(); err != nil {
		return err
	}
	switch step.Action {
	case "switch":
		err := s.set.switchOver(s.old)
		if refused := redistest.ReplyError(""); errors.As(err, &refused) {
			return nil // too soon after the last time: endTakeOver asks again
		}
		return err
	case "partition":
		return s.network.Part(s.old)
	case history.FreezePrimary:
		return s.old.Stop()
	case "migrate":
		c, ok := s.set.(clusterSet)
		if !ok {
			return errors.New("only a cluster has slots")
		}
		s.moving, err = c.beginMigration(s.old)
		return err
	}
	s.old.Kill()
	return nil
}

// endTakeOver waits until another node is primary, brings the old one back and waits until it follows.
func (s *redisServers) endTakeOver(ctx context.Context, step schedule.Step) error {
	if step.Action == "migrate" {
		return s.moving.finish(ctx)
	}
	if err := s.succeeded(ctx, step.Action); err != nil {
		return err
	}
	var err error
	switch step.Action {
	case "failover":
		err = s.old.Restart()
	case "partition":
		err = s.network.Join(s.old)
	case history.FreezePrimary:
		err = s.old.Continue()
	}
	if err != nil {
		return err
	}
	return s.set.Ready(ctx)
}

// succeeded waits until another node is primary. One that was asked too soon after the last time may have refused: it
// is asked again.
func (s *redisServers) succeeded(ctx context.Context, action string) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, 8*time.Second)
		err := s.set.next(waiting, s.old)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if action == "switch" {
			_ = s.set.switchOver(s.old) // refused while it is under way
		}
	}
}

// replicaOf finds the node that follows another.
func (s clusterSet) replicaOf(primary *redistest.Server) (*redistest.Server, error) {
	_, port, _ := strings.Cut(primary.Addr(), ":")
	for _, n := range s.Nodes {
		if n == primary || !n.Running() {
			continue
		}
		reply, err := n.Command("INFO", "replication")
		if err != nil {
			return nil, err
		}
		if strings.Contains(reply.Text, "role:slave") && strings.Contains(reply.Text, "master_port:"+port+"\r") {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s has no replica", primary)
}
