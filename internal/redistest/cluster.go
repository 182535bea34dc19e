package redistest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	clusterPrimaries = 3
	clusterSlots     = 16384
)

// ClusterSet is a cluster of three primaries with one replica each, which replaces a dead primary after about 2 s.
type ClusterSet struct {
	// Nodes are the three that are primaries at the start, then their replicas in the same order.
	Nodes []*Server

	options   Options
	authority *authority
}

// Cluster starts a cluster that ends with the test, and returns when all slots are served and replicated.
func Cluster(t testing.TB, o Options) *ClusterSet {
	t.Helper()
	dir := t.TempDir()
	c := &ClusterSet{options: o}
	t.Cleanup(func() { endAll(t, c.Nodes) })
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	var err error
	if c.authority, err = authorityFor(o, dir); err == nil {
		err = c.launch(dir)
	}
	if err == nil {
		err = c.form(ctx)
	}
	if err == nil {
		err = c.Ready(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *ClusterSet) launch(dir string) error {
	lines := []string{
		"cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-announce-ip 127.0.0.1",
		"cluster-node-timeout 1500",
		"cluster-replica-validity-factor 0", // a replica takes over however long it was cut off
		"repl-ping-replica-period 1",        // 7.0 hides a replica from clients until it got its first byte
	}
	if c.options.TLS {
		lines = append(lines, "tls-cluster yes")
	}
	for i := range 2 * clusterPrimaries {
		n, err := launch(spec{
			dir:     filepath.Join(dir, fmt.Sprintf("node%d", i)),
			options: c.options, authority: c.authority, extra: lines,
		})
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, n)
	}
	return nil
}

// form makes one cluster of the nodes. Each meets each: gossip alone would need a second or two.
func (c *ClusterSet) form(ctx context.Context) error {
	for i, n := range c.Nodes {
		if _, err := n.Command("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i < clusterPrimaries {
			if _, err := n.Command(append([]string{"CLUSTER", "ADDSLOTS"}, slotsOf(i)...)...); err != nil {
				return err
			}
		}
		for _, other := range c.Nodes[:i] {
			if _, err := n.Command("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port.number)); err != nil {
				return err
			}
		}
	}
	for i, replica := range c.Nodes[clusterPrimaries:] {
		id, err := c.Nodes[i].Command("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		// Refused until the replica has heard of its primary.
		if err := until(ctx, func() error {
			_, err := replica.Command("CLUSTER", "REPLICATE", id.Text)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// slotsOf lists the i-th third of the slots. ADDSLOTSRANGE would be shorter, but is not in 6.2.
func slotsOf(i int) []string {
	var slots []string
	for slot := i * clusterSlots / clusterPrimaries; slot < (i+1)*clusterSlots/clusterPrimaries; slot++ {
		slots = append(slots, strconv.Itoa(slot))
	}
	return slots
}

// URL names all nodes: redis+cluster://h1,h2,...
func (c *ClusterSet) URL() string {
	return location("+cluster", c.authority, "", c.options.Password, strings.Join(c.Addrs(), ","), "")
}

// Addrs are those of all nodes.
func (c *ClusterSet) Addrs() []string {
	return addrs(c.Nodes)
}

// Command runs one command on the node that owns its key.
func (c *ClusterSet) Command(args ...string) (Reply, error) {
	var failed error
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		reply, err := n.Command(args...)
		var refused ReplyError
		if errors.As(err, &refused) && strings.HasPrefix(string(refused), "MOVED ") {
			owner, err := c.movedTo(refused)
			if err != nil {
				return Reply{}, err
			}
			return owner.Command(args...)
		}
		if err == nil || errors.As(err, &refused) {
			return reply, err
		}
		failed = errors.Join(failed, err)
	}
	return Reply{}, fmt.Errorf("no node answers: %w", failed)
}

// movedTo reads "MOVED slot host:port".
func (c *ClusterSet) movedTo(moved ReplyError) (*Server, error) {
	words := strings.Fields(string(moved))
	host, port, ok := strings.Cut(words[len(words)-1], ":")
	if !ok {
		return nil, moved
	}
	return nodeAt(c.Nodes, host, port)
}

// PrimaryOf returns the node that owns a key, as the first node that answers knows it.
func (c *ClusterSet) PrimaryOf(key string) (*Server, error) {
	var failed error
	for _, n := range c.Nodes {
		if !n.Running() {
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
			if n.Running() {
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
