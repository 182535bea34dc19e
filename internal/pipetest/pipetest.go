// Package pipetest is a network inside the process, for tests: a server and its clients run in the virtual time of
// testing/synctest.
package pipetest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// Listener is a [net.Listener] to which only Dial connects.
type Listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// Listen returns a listener. Close it.
func Listen() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections stay.
func (l *Listener) Close() error { l.once.Do(func() { close(l.done) }); return nil }

// Addr is an address to show.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

// Dial connects to the listener, whatever the address, or says that nobody listens.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("connection refused"), here.Close(), there.Close())
}
