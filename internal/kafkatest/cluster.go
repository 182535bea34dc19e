package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ferrymq/ferry/internal/netns"
)

// Cluster is one or three brokers.
type Cluster struct {
	Brokers []*Broker
	network *netns.Network // nil: they share the loopback address
}

// Start starts n brokers with their files in dir, and returns when all listen. Programs use it; tests use Single.
func Start(dir string, n int) (*Cluster, error) { return StartIn(nil, dir, n) }

// StartIn is Start with brokers that can be cut off from each other; nil is the loopback address for all. The network
// is closed after the cluster.
func StartIn(network *netns.Network, dir string, n int) (*Cluster, error) {
	java, libs, err := locate()
	if err != nil {
		return nil, err
	}
	c := &Cluster{network: network}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := c.launch(ctx, dir, java, libs, n); err != nil {
		defer c.Close()
		return nil, fmt.Errorf("no Kafka: %w\n%s", err, c.logs())
	}
	return c, nil
}

func (c *Cluster) launch(ctx context.Context, dir, java, libs string, n int) error {
	var voters []string
	for i := range n {
		b := &Broker{id: i + 1, dir: filepath.Join(dir, fmt.Sprint("broker", i+1)), java: java, libs: libs}
		var err error
		if b.port, err = reservePort(); err != nil {
			return err
		}
		if b.controller, err = reservePort(); err != nil {
			b.port.release()
			return err
		}
		c.Brokers = append(c.Brokers, b)
		if c.network != nil {
			if b.host, err = c.network.Add(); err != nil {
				return err
			}
		}
		voters = append(voters, fmt.Sprintf("%d@%s", b.id, b.at(b.controller)))
	}
	cluster := make([]byte, 16)
	_, _ = rand.Read(cluster) // never fails
	cluster[0] &= 0x7f        // an id that begins with '-' looks like an option
	id := base64.RawURLEncoding.EncodeToString(cluster)
	for _, b := range c.Brokers {
		if err := b.format(id, properties(b, strings.Join(voters, ","), n)); err != nil {
			return err
		}
	}
	for _, b := range c.Brokers {
		if err := b.start(); err != nil {
			return err
		}
	}
	for _, b := range c.Brokers {
		if err := b.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Addrs are those of all brokers.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		addrs[i] = b.Addr()
	}
	return addrs
}

// Part cuts a broker off from the others. Clients still reach it.
func (c *Cluster) Part(b *Broker) error { return c.network.Part(b.host) }

// Join ends that.
func (c *Cluster) Join(b *Broker) error { return c.network.Join(b.host) }

// Close ends all processes for good.
func (c *Cluster) Close() {
	for _, b := range c.Brokers {
		if b.cmd != nil {
			b.Close()
		} else {
			b.port.release()
			b.controller.release()
		}
	}
}

func (c *Cluster) logs() string {
	var text strings.Builder
	for _, b := range c.Brokers {
		fmt.Fprintf(&text, "--- broker %d at %s\n%s\n", b.id, b.Addr(), b.Log())
	}
	return text.String()
}

// locate finds the JVM and the jars, or says how to get them.
func locate() (java, libs string, err error) {
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", fmt.Errorf("no JDK is installed, run scripts/kafka.sh: %w", err)
	}
	start, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "kafka.sh")); err == nil {
			home := filepath.Join(dir, ".cache", "kafka", version)
			if _, err := os.Stat(filepath.Join(home, "complete")); err != nil {
				return "", "", fmt.Errorf("no Apache Kafka %s here, run scripts/kafka.sh: %w", version, err)
			}
			return java, filepath.Join(home, "libs"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", "", fmt.Errorf("no scripts/kafka.sh in or above %s", start)
		}
	}
}
