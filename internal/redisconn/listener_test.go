package redisconn

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/internal/redistest"
)

// deaf is a connection that hears nothing any more, although it is not closed.
type deaf struct {
	net.Conn
	is *atomic.Bool
}

func (d deaf) Read(b []byte) (int, error) {
	for {
		n, err := d.Conn.Read(b)
		if err != nil || !d.is.Load() {
			return n, err
		}
	}
}

// A listener finds out that its connection is cut, with or without a word, and goes on with another one.
func TestListenerReconnects(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	var is atomic.Pointer[atomic.Bool]
	c := goredis.NewClient(&goredis.Options{Addr: server.Addr(),
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			mine := new(atomic.Bool)
			is.Store(mine)
			return deaf{conn, mine}, nil
		}})
	defer func() { _ = c.Close() }()
	l := NewListener(c)
	l.silence = 200 * time.Millisecond
	joined, heard, back := make(chan string, 10), make(chan string, 10), make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx, func(channel string) { joined <- channel }, func(_, payload string) { heard <- payload },
			func() { back <- struct{}{} })
	}()
	defer func() { cancel(); l.Close(); <-ended }()
	if err := l.Follow("news"); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"first", "closed", "deaf"} {
		switch how {
		case "closed":
			if _, err := server.Command("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
				t.Fatal(err)
			}
		case "deaf":
			is.Load().Store(true)
		}
		if channel := <-joined; channel != "news" {
			t.Errorf("%s: joined %q", how, channel)
		}
		if how == "closed" {
			<-back
		}
		if _, err := server.Command("PUBLISH", "news", how); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != how {
			t.Errorf("heard %q, want %q", got, how)
		}
	}
}
