package redisconn

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// cut is a connection that is closed right after a script was sent, while armed: it was applied, and nobody says so.
type cut struct {
	net.Conn
	armed *atomic.Bool
	sent  *atomic.Int64
}

func (c cut) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("evalsha")) && c.armed.Load() {
		c.sent.Add(1)
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		_, _ = c.Conn.Read(make([]byte, 1)) // until the server has answered
		_ = c.Conn.Close()
	}
	return n, err
}

// A client that tries again by itself does not do so with our scripts: the caller hears that the outcome is unknown,
// and nothing that happens in a second try can hide it.
func TestScriptIsSentOnce(t *testing.T) {
	t.Parallel()
	single := redistest.Shared(t)
	for name, connect := range map[string]func(
		dial func(context.Context, string, string) (net.Conn, error)) goredis.UniversalClient{
		"single": func(dial func(context.Context, string, string) (net.Conn, error)) goredis.UniversalClient {
			return goredis.NewClient(&goredis.Options{Addr: single.Addr(), Dialer: dial, MaxRetries: 3})
		},
		"cluster": func(dial func(context.Context, string, string) (net.Conn, error)) goredis.UniversalClient {
			return goredis.NewClusterClient(
				&goredis.ClusterOptions{Addrs: redistest.Cluster(t, redistest.Options{Steady: true}).Addrs(), Dialer: dial,
					MaxRetries: 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var armed atomic.Bool
			var sent atomic.Int64
			c := connect(func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return cut{conn, &armed, &sent}, nil
			})
			defer func() { _ = c.Close() }()
			incr := NewScript("return {redis.call('INCR', KEYS[1])}")
			key := []string{"{" + t.Name() + "}"}
			if _, err := incr.Run(t.Context(), c, key); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			_, err := incr.Run(t.Context(), c, key)
			armed.Store(false)
			if !errors.Is(err, driver.ErrUnknown) || sent.Load() != 1 {
				t.Errorf("sent %d times, %v; want once and ErrUnknown", sent.Load(), err)
			}
			if reply, err := incr.Run(t.Context(), c, key); err != nil || reply[0] != int64(3) {
				t.Errorf("the third call counts %v, %v", reply, err)
			}
		})
	}
}

// A server that has forgotten a script is sent its text, also on a connection of its own.
func TestScriptIsSentAgainAfterFlush(t *testing.T) {
	t.Parallel()
	set := redistest.Sentinel(t, redistest.Options{Steady: true})
	c, err := Connect(set.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s := NewScript("return {redis.call('INCR', KEYS[1])}")
	for n := int64(1); n <= 4; n += 2 {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if reply, err := s.Run(t.Context(), c, []string{"n"}); err != nil || reply[0] != n {
			t.Errorf("Run: %v, %v; want %d", reply, err, n)
		}
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if reply, err := s.RunAt(t.Context(), c, driver.Replicated(1), []string{"n"}); err != nil || reply[0] != n+1 {
			t.Errorf("RunAt: %v, %v; want %d", reply, err, n+1)
		}
	}
}
