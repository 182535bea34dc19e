package console

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/internal/redistest"
)

// outage is a server and its Redis, either of which a test in the browser can take away. The browser reaches the server
// at an address that stays, whatever address a server has that was started again.
type outage struct {
	server *ferryServer
	redis  *redistest.Server

	mu     sync.Mutex
	target string // where the server is; empty: nowhere
	open   map[net.Conn]struct{}
	conns  sync.WaitGroup
}

// startOutage returns the address of the server, and one at which /server?up= and /redis?up= start and kill them.
func startOutage(t *testing.T, s *ferryServer, redis *redistest.Server) string {
	t.Helper()
	o := &outage{server: s, redis: redis, open: map[net.Conn]struct{}{}}
	o.find()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	control := httptest.NewServer(http.HandlerFunc(o.control))
	o.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			o.conns.Go(func() { o.carry(c) })
		}
	})
	t.Cleanup(func() {
		control.Close()
		_ = l.Close()
		o.lose()
		o.conns.Wait()
	})
	return "http://" + l.Addr().String() + " " + control.URL
}

// find notes where the server is.
func (o *outage) find() {
	u, err := url.Parse(o.server.url)
	if err != nil {
		o.server.Error(err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.target = u.Host
}

// lose cuts every connection, and lets none through.
func (o *outage) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.target = ""
	for c := range o.open {
		_ = c.Close()
	}
}

func (o *outage) control(w http.ResponseWriter, r *http.Request) {
	up := r.URL.Query().Get("up") == "true"
	var err error
	switch {
	case r.URL.Path == "/redis" && up:
		err = o.redis.Restart()
	case r.URL.Path == "/redis":
		o.redis.Kill()
	case r.URL.Path == "/server" && up:
		o.server.start()
		o.find()
	case r.URL.Path == "/server":
		o.lose()
		err = o.server.process.Process.Kill()
		_ = o.server.process.Wait() // who is killed does not end well
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// carry brings what comes on a connection to the server, and back.
func (o *outage) carry(browser net.Conn) {
	defer func() { _ = browser.Close() }()
	o.mu.Lock()
	target := o.target
	o.mu.Unlock()
	if target == "" {
		return
	}
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	o.mu.Lock()
	if lost := o.target != target; lost {
		o.mu.Unlock()
		return
	}
	o.open[browser], o.open[server] = struct{}{}, struct{}{}
	o.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, browser); _ = server.Close() })
	both.Go(func() { _, _ = io.Copy(browser, server); _ = browser.Close() })
	both.Wait()
	o.mu.Lock()
	delete(o.open, browser)
	delete(o.open, server)
	o.mu.Unlock()
}
