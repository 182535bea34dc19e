package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// PrimaryOf returns the node that owns a key, as the first node that answers knows it.
func (c *ClusterSet) PrimaryOf(key string) (*Server, error) {
	var failed error
	for _, n := range c.Nodes {
		if !n.answering() {
			continue
		}
		owner, err := c.ownerSeenBy(n, key)
		if err == nil {
			return owner, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("no node knows the owner of %q: %w", key, failed)
}

func (c *ClusterSet) ownerSeenBy(n *Server, key string) (*Server, error) {
	reply, err := n.Command("CLUSTER", "KEYSLOT", key)
	if err != nil {
		return nil, err
	}
	slot, err := strconv.Atoi(reply.Text)
	if err != nil {
		return nil, err
	}
	ranges, err := slotRanges(n)
	if err != nil {
		return nil, err
	}
	for _, r := range ranges {
		if r.first <= slot && slot <= r.last {
			return nodeAt(c.Nodes, r.nodes[0].List[0].Text, r.nodes[0].List[1].Text)
		}
	}
	return nil, fmt.Errorf("slot %d has no owner", slot)
}

// NextPrimaryOf waits until another node than old owns a key and all running nodes serve the cluster again.
func (c *ClusterSet) NextPrimaryOf(ctx context.Context, key string, old *Server) (*Server, error) {
	var next *Server
	err := until(ctx, func() (err error) {
		if next, err = c.PrimaryOf(key); err != nil {
			return err
		}
		if next == old {
			return fmt.Errorf("%s still owns %q", old, key)
		}
		for _, n := range c.Nodes {
			if n.answering() {
				if err := clusterOK(n); err != nil {
					return err
				}
			}
		}
		return isPrimary(next)
	})
	return next, err
}

// Ready waits for full strength: all nodes run and see each slot served, and each replica is connected.
func (c *ClusterSet) Ready(ctx context.Context) error {
	return until(ctx, func() error {
		for _, n := range c.Nodes {
			if err := errors.Join(clusterOK(n), covered(n)); err != nil {
				return err
			}
			role, err := n.info("replication", "role")
			if err != nil {
				return err
			}
			if role == "master" {
				err = replicates(n, 1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func clusterOK(n *Server) error {
	reply, err := n.Command("CLUSTER", "INFO")
	if err == nil && field(reply.Text, "cluster_state") != "ok" {
		err = fmt.Errorf("%s sees the cluster as %s", n, field(reply.Text, "cluster_state"))
	}
	return err
}

// covered checks that a node knows a primary and a replica for each slot.
func covered(n *Server) error {
	ranges, err := slotRanges(n)
	if err != nil {
		return err
	}
	sum := 0
	for _, r := range ranges {
		if len(r.nodes) > 1 {
			sum += r.last - r.first + 1
		}
	}
	if sum != clusterSlots {
		return fmt.Errorf("%s sees a primary and a replica for %d slots only", n, sum)
	}
	return nil
}

// slotRange is a line of CLUSTER SLOTS: the primary is the first of its nodes.
type slotRange struct {
	first, last int
	nodes       []Reply
}

func slotRanges(n *Server) ([]slotRange, error) {
	reply, err := n.Command("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	var ranges []slotRange
	for _, line := range reply.List {
		if len(line.List) < 3 || slices.ContainsFunc(line.List[2:], func(node Reply) bool { return len(node.List) < 2 }) {
			return nil, fmt.Errorf("%s answers a strange slot: %v", n, line)
		}
		first, err1 := strconv.Atoi(line.List[0].Text)
		last, err2 := strconv.Atoi(line.List[1].Text)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		ranges = append(ranges, slotRange{first, last, line.List[2:]})
	}
	return ranges, nil
}
