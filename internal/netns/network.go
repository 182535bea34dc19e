// Package netns makes private networks for tests: every server has a network namespace and an address of its own.
package netns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Network is a private network in which every server has a network namespace and an address of its own, so that servers
// can be cut off from each other while their clients reach all of them. It needs Linux, root and the program ip.
type Network struct {
	bridge string
	subnet string // the first three numbers of its addresses

	mu    sync.Mutex
	hosts []*Host
}

// Host is the place of one server in the network. A nil Host is the loopback address of this machine.
type Host struct {
	namespace string
	address   string
}

const loopback = "127.0.0.1"

// IP is the address to listen on and to be reached at.
func (h *Host) IP() string {
	if h == nil {
		return loopback
	}
	return h.address
}

// Command runs a program in the namespace. The program replaces ip itself, so that its process is the one that was
// started.
func (h *Host) Command(binary string, args []string) (string, []string) {
	if h == nil {
		return binary, args
	}
	return "ip", append([]string{"netns", "exec", h.namespace, binary}, args...)
}

// CanPartition says whether a Network can be made here.
func CanPartition() bool {
	_, err := exec.LookPath("ip")
	return err == nil && namespaces && os.Geteuid() == 0
}

// New makes an empty network. Close removes it when its servers are closed.
func New() (*Network, error) {
	if !CanPartition() {
		return nil, errors.New("network namespaces need Linux, root and the program ip (package iproute2)")
	}
	var failed error
	for range 10 {
		id := rand.IntN(1 << 16)
		n := &Network{bridge: fmt.Sprintf("ferry%04x", id), subnet: fmt.Sprintf("10.%d.%d", 64+id>>8&127, id&255)}
		if failed = ip("link", "add", n.bridge, "type", "bridge"); failed != nil {
			continue // the name is taken
		}
		if failed = errors.Join(ip("addr", "add", n.subnet+".1/24", "dev", n.bridge),
			ip("link", "set", n.bridge, "up")); failed == nil {
			return n, nil
		}
		_ = n.Close()
	}
	return nil, fmt.Errorf("no private network: %w", failed)
}

// Add makes a place for another server.
func (n *Network) Add() (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := len(n.hosts) + 2
	h := &Host{namespace: fmt.Sprintf("%s-%d", n.bridge, number), address: fmt.Sprintf("%s.%d", n.subnet, number)}
	outside, inside := fmt.Sprintf("%s-%d", n.bridge, number), "eth0"
	if err := ip("netns", "add", h.namespace); err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	return h, inOrder(
		[]string{"link", "add", outside, "type", "veth", "peer", "name", inside, "netns", h.namespace},
		[]string{"link", "set", outside, "master", n.bridge, "up"},
		[]string{"-n", h.namespace, "addr", "add", h.address + "/24", "dev", inside},
		[]string{"-n", h.namespace, "link", "set", "lo", "up"},
		[]string{"-n", h.namespace, "link", "set", inside, "up"},
	)
}

// Part cuts a server off from all others. Clients still reach it, and it them.
func (n *Network) Part(h *Host) error { return n.route(h, "add") }

// Join ends that.
func (n *Network) Join(h *Host) error { return n.route(h, "del") }

// route adds or removes holes in a server's way to each of the others: what it sends there is lost, so that no
// connection lives, whoever began it.
func (n *Network) route(h *Host, verb string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h == nil {
		return errors.New("the server is not in a network of its own")
	}
	var errs []error
	for _, other := range n.hosts {
		if other != h {
			errs = append(errs, ip("-n", h.namespace, "route", verb, "blackhole", other.address+"/32"))
		}
	}
	return errors.Join(errs...)
}

// Close removes the network. Its servers must be down.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, h := range n.hosts {
		errs = append(errs, ip("netns", "del", h.namespace)) // and with it both ends of its link
	}
	n.hosts = nil
	return errors.Join(append(errs, ip("link", "del", n.bridge))...)
}

func inOrder(commands ...[]string) error {
	for _, c := range commands {
		if err := ip(c...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
