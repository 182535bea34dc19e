package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that answers what it is told, and remembers how much that was.
type echo struct {
	net.Listener
	mu   sync.Mutex
	got  int
	more chan struct{} // has an element when got has grown
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l, more: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.got += n
		e.mu.Unlock()
		select {
		case e.more <- struct{}{}:
		default:
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (e *echo) total() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.got
}

// await returns when the server has got n bytes in all.
func (e *echo) await(t *testing.T, n int) {
	t.Helper()
	for {
		got := e.total()
		if got >= n {
			return
		}
		select {
		case <-e.more:
		case <-time.After(time.Minute):
			t.Fatalf("the server got %d bytes, want %d", got, n)
		}
	}
}

func open(t *testing.T) (*Proxy, *echo) {
	t.Helper()
	e := startEcho(t)
	p, err := Listen(e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, e
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// say sends text and returns what comes back within a time.
func say(t *testing.T, c net.Conn, text string, within time.Duration) (string, error) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	return hear(t, c, len(text), within)
}

func hear(t *testing.T, c net.Conn, n int, within time.Duration) (string, error) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, n)
	got, err := io.ReadFull(c, buf)
	return string(buf[:got]), err
}

const (
	patience = time.Minute
	silence  = 100 * time.Millisecond // long enough for an answer that nothing holds back
)

func TestPassAndLatency(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	c := dial(t, p)
	if got, err := say(t, c, "hello", patience); got != "hello" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	p.Set(Latency, 150*time.Millisecond)
	start := time.Now()
	if got, err := say(t, c, "slow", patience); got != "slow" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Fatalf("took %v, want 150 ms each way", took)
	}
	p.Set(Throttle, 50*time.Millisecond)
	start = time.Now()
	long := strings.Repeat("x", 2<<10)
	if got, err := say(t, c, long, patience); got != long || err != nil {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if took := time.Since(start); took < 200*time.Millisecond {
		t.Fatalf("2 KiB there and back took %v, want 50 ms for each", took)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	p, _ := open(t)
	c := dial(t, p)
	if _, err := say(t, c, "hello", patience); err != nil {
		t.Fatal(err)
	}
	p.Set(Cut, 0)
	if _, err := hear(t, c, 1, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is still there: %v", err)
	}
	if again, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come during or after the handshake
		if _, err := say(t, again, "again", patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a new connection was let through: %v", err)
		}
		_ = again.Close()
	}
	p.Heal()
	if got, err := say(t, dial(t, p), "again", patience); got != "again" || err != nil {
		t.Fatalf("after the heal: %q %v", got, err)
	}
}

func TestHeldBack(t *testing.T) {
	t.Parallel()
	for _, f := range []Fault{BlackHole, LoseRequests, LoseReplies} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			p, e := open(t)
			c := dial(t, p)
			if _, err := say(t, c, "hello", patience); err != nil {
				t.Fatal(err)
			}
			p.Set(f, 0)
			if got, err := say(t, c, "anyone", silence); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("an answer came through: %q %v", got, err)
			}
			if f == LoseReplies {
				e.await(t, len("hello"+"anyone")) // the server did its work
			} else if got := e.total(); got != len("hello") {
				t.Fatalf("the server got %d bytes", got)
			}
			p.Heal()
			if got, err := hear(t, c, len("anyone"), patience); got != "anyone" || err != nil {
				t.Fatalf("after the heal: %q %v", got, err)
			}
		})
	}
}

func TestResetInTheMiddleOfAReply(t *testing.T) {
	t.Parallel()
	p, e := open(t)
	c := dial(t, p)
	p.Set(ResetReply, 0)
	got, err := say(t, c, "12345678", patience)
	if err == nil || len(got) > 4 {
		t.Fatalf("got %q and %v, want at most half of it and a broken connection", got, err)
	}
	e.await(t, 8)
	p.Heal()
	if got, err := say(t, dial(t, p), "again", patience); got != "again" || err != nil {
		t.Fatalf("after the heal: %q %v", got, err)
	}
}

func TestServerAway(t *testing.T) {
	t.Parallel()
	p, e := open(t)
	_ = e.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return // reset during the handshake
	}
	defer func() { _ = c.Close() }()
	if _, err := say(t, c, "hello", patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an answer from a server that is away: %v", err)
	}
}
