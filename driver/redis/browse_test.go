package redis_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// calls counts what is sent for one caller: contexts of others do not carry it.
type calls struct {
	hook
	n atomic.Int64
}

func (c *calls) count(ctx context.Context) {
	if ctx.Value(c) != nil {
		c.n.Add(1)
	}
}

func (c *calls) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error { c.count(ctx); return next(ctx, cmd) }
}

func (c *calls) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error { c.count(ctx); return next(ctx, cmds) }
}

// counting returns a driver whose calls are counted.
func counting(t *testing.T) (*redis.Driver, *calls) {
	t.Helper()
	counted := &calls{}
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	client.AddHook(counted)
	d, err := redis.New(t.Context(), redis.Options{Client: client, Prefix: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close(context.Background()); _ = client.Close() })
	return d, counted
}

// TestTopicsAreTwoCalls: however many topics there are, their names are one call and what is said of them another.
func TestTopicsAreTwoCalls(t *testing.T) {
	t.Parallel()
	d, counted := counting(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := d.EnsureTopic(t.Context(), name, driver.TopicConfig{}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.Topics(context.WithValue(t.Context(), counted, true))
	if n := counted.n.Load(); err != nil || len(all) != 4 || n != 2 {
		t.Errorf("%d topics took %d calls, %v", len(all), n, err)
	}
}

// TestPageIsOneCall: a page of ready messages takes one call of the server, however many messages are gone before them,
// and one that is too large for a call takes more of them and is the same.
func TestPageIsOneCall(t *testing.T) {
	t.Parallel()
	d, counted := counting(t)
	var msgs []*driver.Message
	for i := range 300 {
		msgs = append(msgs, &driver.Message{Topic: "t", ID: fmt.Sprintf("m%d", i), OwnID: true, Body: []byte("x")})
	}
	for i := range 3 {
		msgs = append(msgs, &driver.Message{Topic: "t", ID: fmt.Sprintf("large%d", i), OwnID: true,
			Body: []byte(strings.Repeat("x", 3<<20))})
	}
	for _, m := range msgs {
		if _, err := d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range msgs[:200] {
		if err := d.Delete(t.Context(), []driver.Target{{Topic: "t", ID: m.ID}})[0]; err != nil {
			t.Fatal(err)
		}
	}
	q := driver.Query{Topic: "t", Group: driver.DefaultGroup, State: driver.StateReady, Limit: 50}
	asking := context.WithValue(t.Context(), counted, true)
	page, err := d.Browse(t.Context(), q) // which also teaches the server the script, and the driver the groups
	if err != nil {
		t.Fatal(err)
	}
	if page, err = d.Browse(asking, q); err != nil || len(page.Entries) != 50 || page.Entries[0].ID != "m200" {
		t.Fatalf("%d entries, %v", len(page.Entries), err)
	}
	if n := counted.n.Swap(0); n != 1 {
		t.Errorf("a page took %d calls", n)
	}
	q.Limit = 103
	if page, err = d.Browse(asking, q); err != nil || len(page.Entries) != 103 || page.Entries[102].ID != "large2" {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
	if n := counted.n.Load(); n != 2 {
		t.Errorf("a page with 9 MB took %d calls, want 2 of at most about 4 MB each", n)
	}
}
