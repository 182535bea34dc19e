package redisconn

import (
	"context"
	"errors"
	"net"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// A command that is under way when its client is closed says so, and that nobody knows what became of it.
func TestClosedWhileACommandIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(context.Context, *goredis.Client) error{
		"command": func(ctx context.Context, c *goredis.Client) error { return c.Incr(ctx, "k").Err() },
		"pipeline": func(ctx context.Context, c *goredis.Client) error {
			var n *goredis.IntCmd
			_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error { n = p.Incr(ctx, "k"); return nil })
			if err == nil || n.Err() == nil {
				return errors.New("it was carried out")
			}
			return n.Err()
		},
		"script": func(ctx context.Context, c *goredis.Client) error {
			s := NewScript("return {}")
			_, err := s.Run(ctx, c, []string{"k"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			c := goredis.NewClient(&goredis.Options{Addr: silent(t, asked), Protocol: 2, DisableIdentity: true, MaxRetries: -1})
			closing := NewClosing(c)
			ended := make(chan error, 1)
			go func() { ended <- send(context.Background(), c) }()
			<-asked
			if err := closing.Close(c); err != nil {
				t.Error(err)
			}
			err := Classify(<-ended)
			// only scripts are never sent twice
			if !errors.Is(err, driver.ErrClosed) || name == "script" && !errors.Is(err, driver.ErrUnknown) {
				t.Errorf("it says %v, want ErrClosed, and of a script ErrUnknown behind it", err)
			}
		})
	}
}

// The same holds for a command that is sent to one node of a cluster.
func TestClosedWhileANodeIsAsked(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	all := []goredis.ClusterSlot{{End: 16383, Nodes: []goredis.ClusterNode{{Addr: silent(t, asked)}}}}
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Protocol: 2, DisableIdentity: true, MaxRedirects: -1,
		ClusterSlots: func(context.Context) ([]goredis.ClusterSlot, error) { return all, nil }})
	closing := NewClosing(c)
	ended := make(chan error, 1)
	go func() {
		ended <- c.ForEachMaster(context.Background(), func(ctx context.Context, node *goredis.Client) error {
			return node.Incr(ctx, "k").Err()
		})
	}()
	<-asked
	if err := closing.Close(c); err != nil {
		t.Error(err)
	}
	if err := Classify(<-ended); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("it says %v, want ErrClosed", err)
	}
}

// silent listens, says when it was asked something, and does not answer. It returns its address.
func silent(t *testing.T, asked chan<- struct{}) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-over })
	go func() {
		defer close(over)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = conn.Read(make([]byte, 1))
		close(asked)
		for err == nil { // until the client closes
			_, err = conn.Read(make([]byte, 4096))
		}
	}()
	return l.Addr().String()
}
