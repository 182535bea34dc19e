package redistest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Withheld is a way to servers on which the replies to some commands do not arrive until they are let through. The
// connections that wait for them are in use meanwhile.
type Withheld struct {
	word    atomic.Pointer[[]byte]
	waiting atomic.Int64
	stuck   chan struct{}
	through chan struct{}
	once    sync.Once
}

// NewWithheld returns one that withholds nothing yet.
func NewWithheld() *Withheld {
	return &Withheld{stuck: make(chan struct{}, 64), through: make(chan struct{})}
}

// Hold withholds replies to what contains a word, from now on.
func (w *Withheld) Hold(word string) { b := []byte(word); w.word.Store(&b) }

// Waiting is how many connections wait.
func (w *Withheld) Waiting() int { return int(w.waiting.Load()) }

// Stuck says of each connection that it begins to wait; of the first 64, if nobody listens.
func (w *Withheld) Stuck() <-chan struct{} { return w.stuck }

// Release lets all through, for good.
func (w *Withheld) Release() { w.once.Do(func() { close(w.through) }) }

// Dial connects to a server.
func (w *Withheld) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &withheldConn{Conn: c, w: w}, nil
}

type withheldConn struct {
	net.Conn
	w    *Withheld
	held atomic.Bool
}

func (c *withheldConn) Write(b []byte) (int, error) {
	if word := c.w.word.Load(); word != nil && bytes.Contains(b, *word) {
		c.held.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *withheldConn) Read(b []byte) (int, error) {
	if c.held.Swap(false) {
		c.w.waiting.Add(1)
		select {
		case c.w.stuck <- struct{}{}:
		default:
		}
		<-c.w.through
		c.w.waiting.Add(-1)
	}
	return c.Conn.Read(b)
}
