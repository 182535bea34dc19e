package redistest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
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

// StartCluster starts a cluster with its files in dir, and returns when all slots are served and replicated. Programs
// use it; tests use Cluster.
func StartCluster(ctx context.Context, dir string, o Options) (*ClusterSet, error) {
	a, err := authorityFor(o, dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c := &ClusterSet{options: o, authority: a}
	if err = c.launch(dir); err == nil {
		err = c.form(ctx)
	}
	if err == nil {
		err = c.Ready(ctx)
	}
	if err == nil && o.Steady {
		err = c.steady()
	}
	if err != nil {
		defer c.Close()
		return nil, fmt.Errorf("no cluster: %w\n%s", err, logTails(c.Nodes))
	}
	return c, nil
}

// Close ends all processes for good.
func (c *ClusterSet) Close() {
	for _, n := range c.Nodes {
		n.Close()
	}
}

func (c *ClusterSet) launch(dir string) error {
	lines := []string{
		"cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-announce-ip " + ownIP,
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
			if _, err := n.Command("CLUSTER", "MEET", other.host.IP(), strconv.Itoa(other.port.number)); err != nil {
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

// steady keeps nodes from taking over. It is done last: until a cluster serves its slots, nodes wait the longer the
// later they may do that.
func (c *ClusterSet) steady() error {
	for _, n := range c.Nodes {
		if _, err := n.Command("CONFIG", "SET", "cluster-node-timeout", c.options.failAfter()); err != nil {
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
		if !n.answering() {
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
