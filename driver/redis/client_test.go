package redis_test

import (
	"context"
	"crypto/rand"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
)

// hook changes what a client sends.
type hook struct {
	process func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error
}

func (h hook) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h hook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if h.process == nil {
			return next(ctx, cmd)
		}
		return h.process(ctx, cmd, next)
	}
}

func (h hook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// openWith returns a driver on a client of the test's own, which it closes at the end.
func openWith(t testing.TB, addr, prefix string, h hook) *redis.Driver {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	c.AddHook(h)
	d, err := redis.New(context.Background(), redis.Options{Client: c, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return d
}

// doorbell counts the connections that are tried.
type doorbell struct {
	addr string
	n    atomic.Int64
}

// open returns a driver on a client of its own, which is closed at the end.
func (b *doorbell) open(t testing.TB) *redis.Driver {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: b.addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			b.n.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}})
	t.Cleanup(func() { _ = c.Close() })
	d, err := redis.New(context.Background(), redis.Options{Client: c, Prefix: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// isScript reports whether a command runs one of our scripts.
func isScript(cmd goredis.Cmder) bool { return strings.HasPrefix(cmd.Name(), "eval") }

// namespace returns a prefix that nobody else uses.
func namespace() string { return "t" + rand.Text() }

// closing closes a driver at the end of the test.
func closing(t testing.TB, d driver.Driver) {
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// publish stores bodies in a topic and demands that all are taken.
func publish(t testing.TB, d driver.Driver, topic string, bodies ...string) {
	t.Helper()
	ms := make([]*driver.Message, len(bodies))
	for i, b := range bodies {
		ms[i] = &driver.Message{ID: rand.Text(), Topic: topic, Body: []byte(b)}
	}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

// subscribe joins the default group of a topic.
func subscribe(t testing.TB, d driver.Driver, topic string) driver.Subscription {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: topic, Instance: "tester"})
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return s
}

// drain acks n messages.
func drain(t testing.TB, s driver.Subscription, n int) {
	t.Helper()
	for n > 0 {
		ds, err := s.Receive(t.Context(), min(n, 50))
		if err != nil {
			t.Fatalf("Receive with %d to come: %v", n, err)
		}
		ack(t, s, ds)
		n -= len(ds)
	}
}

func ack(t testing.TB, s driver.Subscription, ds []*driver.Delivery) {
	t.Helper()
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i].Delivery = d
	}
	for _, err := range s.Settle(t.Context(), ss) {
		if err != nil {
			t.Fatalf("Settle: %v", err)
		}
	}
}
