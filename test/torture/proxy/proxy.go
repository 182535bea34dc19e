// Package proxy stands between a process and a server over TCP, and spoils the connection on command.
package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Fault is one way to spoil the connections.
type Fault string

// Faults. What is held back flows on after the heal, as TCP itself would send it again; only Cut and ResetReply break
// connections.
const (
	// None lets everything pass.
	None Fault = ""
	// Cut closes all connections, and each new one at once.
	Cut Fault = "cut"
	// BlackHole holds everything back in both directions, and tells nobody.
	BlackHole Fault = "blackhole"
	// Latency delays every chunk in both directions.
	Latency Fault = "latency"
	// Throttle lets a KiB pass in so much time, each way on each connection.
	Throttle Fault = "throttle"
	// LoseRequests holds back what goes to the server, LoseReplies what comes from it.
	LoseRequests Fault = "lose-requests"
	LoseReplies  Fault = "lose-replies"
	// ResetReply lets half of the next reply pass on each connection and then resets it: the server has done its work.
	ResetReply Fault = "reset-reply"
)

// Proxy forwards connections from its own address to one server.
type Proxy struct {
	listener net.Listener
	upstream string
	running  sync.WaitGroup

	mu      sync.Mutex
	fault   Fault
	latency time.Duration
	change  chan struct{} // closed and replaced whenever the fault changes
	links   map[*link]struct{}
	closed  bool
}

// Listen starts a proxy in front of upstream ("host:port") on a port of its own.
func Listen(upstream string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", upstream, err)
	}
	p := &Proxy{listener: l, upstream: upstream, change: make(chan struct{}), links: map[*link]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is where processes connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set begins a fault, in place of any other. The latency is for Latency and Throttle only.
func (p *Proxy) Set(f Fault, latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.latency = f, latency
	close(p.change)
	p.change = make(chan struct{})
	if f == Cut {
		for l := range p.links {
			l.close()
		}
	}
}

// Heal ends the fault.
func (p *Proxy) Heal() { p.Set(None, 0) }

// state returns what is wrong now, and a channel that is closed when that changes.
func (p *Proxy) state() (Fault, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.latency, p.change
}

// Close closes every connection and returns when nothing runs any more.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	if f, _, _ := p.state(); f == Cut {
		reset(client)
		return
	}
	server, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	l := &link{proxy: p, client: client, server: server, gone: make(chan struct{})}
	if !p.add(l) {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fault == Cut {
		return false
	}
	p.links[l] = struct{}{}
	return true
}
