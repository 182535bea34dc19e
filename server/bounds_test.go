package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestLargeBody: a body beyond the bound is refused before it is read, or when it turns out to be.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	read := make(chan error, 2)
	r := start(t, Options{Limits: Limits{Body: 1 << 10}, Mounts: []Mount{
		{Path: "/read", Public: true, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		})},
		{Path: "/large", Public: true, MaxBody: 1 << 20, Handler: http.HandlerFunc(livez)},
	}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// and nothing of it
	_, _ = fmt.Fprintf(conn, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", 1<<30)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != 413 {
		t.Fatalf("%v, %v", res, err)
	}
	_ = res.Body.Close()
	unknown := io.MultiReader(strings.NewReader(strings.Repeat("x", 2<<10))) // has no length that a client knows
	res, err = r.http.Post(r.URL()+"/read", "text/plain", unknown)
	if err == nil {
		_ = res.Body.Close()
	}
	var large *http.MaxBytesError
	if err := <-read; !errors.As(err, &large) {
		t.Errorf("a long body was read: %v", err)
	}
	r.do("POST", "/read", strings.Repeat("x", 2<<10)).problem(t, 413, "too_large")
	if a := r.do("POST", "/large", strings.Repeat("x", 2<<10)); a.StatusCode != 200 {
		t.Errorf("a mount with its own bound: %s", a.Status)
	}
}

// TestSlowBody: a body that does not come ends, and one that has come bounds its handler no more.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	r := start(t, Options{Limits: Limits{Read: 500 * time.Millisecond}, Mounts: []Mount{
		{Path: "/read", Public: true, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		})},
		{Path: "/long", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil { // it has come, and a stalled machine looked too late
				w.WriteHeader(http.StatusRequestTimeout)
				return
			}
			select {
			case <-r.Context().Done():
				w.WriteHeader(http.StatusTeapot)
			case <-time.After(time.Second): // well after Read
			}
		})},
	}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx")
	var slow net.Error
	if err := <-read; !errors.As(err, &slow) || !slow.Timeout() {
		t.Errorf("a slow body: %v", err)
	}
	a := r.do("POST", "/long", "x")
	for a.StatusCode == http.StatusRequestTimeout {
		a = r.do("POST", "/long", "x")
	}
	if a.StatusCode != 200 {
		t.Errorf("the handler of a body that has come is cut off: %s", a.Status)
	}
}

// TestSlowHeads: clients that send the head of a request byte by byte take all connections, and lose them again; a
// client that speaks is answered.
func TestSlowHeads(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Limits: Limits{Header: time.Second, Connections: 16}})
	var all sync.WaitGroup
	for range 32 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: ")
			_, _ = io.Copy(io.Discard, conn) // until the server hangs up
		})
	}
	if a := r.do("GET", "/livez", ""); a.StatusCode != 200 {
		t.Errorf("%s", a.Status)
	}
	all.Wait()
}

// TestManyConnections: far more clients than connections are served some at a time, and each is answered.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	// atOnce of them dial at the same time: the test has to live with its own bounds, too
	const clients, atOnce = 10_000, 200
	r := start(t, Options{Limits: Limits{Connections: 50, Rate: 1e6}})
	address := strings.TrimPrefix(r.URL(), "http://")
	slots := make(chan struct{}, atOnce)
	failed := make(chan error, clients)
	var all sync.WaitGroup
	for range clients {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			failed <- ask(address)
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ask makes one request over a connection of its own.
func ask(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != 200 {
		return errors.New(res.Status)
	}
	return nil
}

// connectionsVariable is how many connections TestConnectionsAtOnce opens: each takes two files of this process.
const connectionsVariable = "FERRY_TORTURE_CONNECTIONS"

// TestConnectionsAtOnce: connections that are all open at the same time are answered, each of them again and again.
func TestConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	n := 500
	if text := os.Getenv(connectionsVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, Options{Limits: Limits{Connections: n + 1, Rate: 1e6, Header: time.Minute}})
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	for range 2 {
		for i, conn := range conns {
			if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatalf("connection %d: %v", i, err)
			}
		}
		for i, conn := range conns {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("connection %d: %v, %v", i, res, err)
			}
			_, err = io.Copy(io.Discard, res.Body)
			if err := errors.Join(err, res.Body.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a := r.do("GET", "/livez", ""); a.StatusCode != http.StatusOK {
		t.Errorf("one more: %s", a.Status)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	t.Parallel()
	var th throttle
	for i := range 2 * mostThrottled {
		th.allow(fmt.Sprint(i), 1, 1)
	}
	if len(th.clients) > mostThrottled+1 {
		t.Errorf("%d clients are told apart", len(th.clients))
	}
	th.swept = time.Time{}
	th.sweep(time.Now().Add(throttleFor + time.Minute))
	if len(th.clients) != 0 {
		t.Error("clients that came no more are not forgotten")
	}
}
