package proxy

import (
	"net"
	"sync"
	"time"
)

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	once           sync.Once
	gone           chan struct{} // closed when the link breaks
}

// run forwards in both directions until either side ends.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { l.pump(l.client, l.server, LoseRequests) })
	both.Go(func() { l.pump(l.server, l.client, LoseReplies) })
	both.Wait()
}

// close breaks both halves with a reset, so that nobody mistakes it for a polite end.
func (l *link) close() {
	l.once.Do(func() {
		close(l.gone)
		reset(l.client)
		reset(l.server)
	})
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// pump forwards chunks, each when the fault of the moment lets it pass. held is the fault that concerns its direction.
func (l *link) pump(from, to net.Conn, held Fault) {
	defer l.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !l.forward(to, buf[:n], held) {
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *link) forward(to net.Conn, chunk []byte, held Fault) bool {
	var due time.Time // of a delayed chunk
	for {
		fault, latency, change := l.proxy.state()
		var wait <-chan time.Time
		switch {
		case fault == BlackHole || fault == held:
		case fault == Latency || fault == Throttle:
			if fault == Throttle {
				latency = latency * time.Duration(len(chunk)) / 1024
			}
			if due.IsZero() {
				due = time.Now().Add(latency)
			}
			if !time.Now().Before(due) {
				return write(to, chunk)
			}
			wait = time.After(time.Until(due))
		case fault == ResetReply && held == LoseReplies:
			_ = write(to, chunk[:(len(chunk)+1)/2])
			return false
		default:
			return write(to, chunk)
		}
		select {
		case <-change:
		case <-wait:
		case <-l.gone:
			return false
		}
	}
}

func write(to net.Conn, chunk []byte) bool {
	_, err := to.Write(chunk)
	return err == nil
}
