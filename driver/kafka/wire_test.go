package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// wire is the network between one driver and the brokers: it can be cut, or held up like a process that is stopped.
type wire struct {
	fatal int16 // a request of this kind cuts it; 0: none

	mu    sync.Mutex
	conns []net.Conn
	down  chan struct{} // closed when it is cut
	held  chan struct{} // not nil: writes wait until it is closed
	only  int16         // the kind of request that waits; 0: all
	part  []byte        // what the requests contain that wait; nil: anything
	begun chan struct{} // closed when one with part waits
	isCut bool

	refused int // connections, while it was cut
}

var errCut = errors.New("the wire is cut")

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	cut := w.isCut
	if cut {
		w.refused++
	}
	w.mu.Unlock()
	if cut {
		return nil, errCut
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.conns = append(w.conns, c)
	w.mu.Unlock()
	return &wired{c, w}, nil
}

// cut ends all connections, and makes no more.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return
	}
	w.isCut = true
	if w.down == nil {
		w.down = make(chan struct{})
	}
	close(w.down)
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// mend makes connections again.
func (w *wire) mend() (dialed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut, w.down = false, nil
	dialed, w.refused = w.refused, 0
	return dialed
}

// wait returns when the wire is cut.
func (w *wire) wait(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	if w.down == nil {
		w.down = make(chan struct{})
	}
	down := w.down
	w.mu.Unlock()
	select {
	case <-down:
	case <-time.After(time.Minute):
		t.Fatal("the wire was not cut")
	}
}

// hold keeps back what is sent until the returned function is called.
func (w *wire) hold() (release func()) { return w.holdOnly(0) }

// holdOnly keeps back requests of one kind, and what comes after them on their connections.
func (w *wire) holdOnly(kind int16) (release func()) {
	held := make(chan struct{})
	w.mu.Lock()
	w.held, w.only = held, kind
	w.mu.Unlock()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		w.held = nil
		w.mu.Unlock()
		close(held)
	})
}

// holdPart keeps back requests that contain a text, and tells when there is one.
func (w *wire) holdPart(text string) (begun <-chan struct{}, release func()) {
	held, waits := make(chan struct{}), make(chan struct{})
	w.mu.Lock()
	w.held, w.only, w.part, w.begun = held, 0, []byte(text), waits
	w.mu.Unlock()
	return waits, sync.OnceFunc(func() {
		w.mu.Lock()
		w.held, w.part = nil, nil
		w.mu.Unlock()
		close(held)
	})
}

type wired struct {
	net.Conn
	w *wire
}

// Write sends a request, unless it is the fatal one.
func (c *wired) Write(b []byte) (int, error) {
	kind := int16(-1)
	if len(b) >= 6 {
		kind = int16(binary.BigEndian.Uint16(b[4:]))
	}
	c.w.mu.Lock()
	held := c.w.held
	if c.w.only != 0 && c.w.only != kind || !bytes.Contains(b, c.w.part) {
		held = nil
	}
	if held != nil && c.w.begun != nil {
		close(c.w.begun)
		c.w.begun = nil
	}
	c.w.mu.Unlock()
	if held != nil {
		<-held
	}
	if c.w.fatal != 0 && c.w.fatal == kind {
		c.w.cut()
		return 0, errCut
	}
	return c.Conn.Write(b)
}
