package redisstream_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// world is a driver with a namespace of its own, and a client that looks behind its back.
type world struct {
	*testing.T
	d      *redisstream.Driver
	c      *goredis.Client
	url    string
	prefix string
}

// newWorld is a world on the server that all share.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldBeside(t)
}

// newWorldBeside is one of several in a test.
func newWorldBeside(t *testing.T) *world {
	t.Helper()
	return worldOn(t, redistest.Shared(t))
}

// worldOn is a world on a server of its own.
func worldOn(t *testing.T, server *redistest.Server) *world {
	t.Helper()
	prefix := "w" + rand.Text()
	w := &world{T: t, d: open(t, server.URL(), prefix), c: goredis.NewClient(&goredis.Options{Addr: server.Addr()}),
		url: server.URL(), prefix: prefix}
	t.Cleanup(func() {
		if err := errors.Join(w.d.Close(context.Background()), w.c.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// quiet is a hook that does nothing; others change what they need of it.
type quiet struct{}

func (quiet) DialHook(next goredis.DialHook) goredis.DialHook          { return next }
func (quiet) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }
func (quiet) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// beside returns another driver on the same topics, with a hook in its client.
func (w *world) beside(hook goredis.Hook) *redisstream.Driver {
	w.Helper()
	o, err := goredis.ParseURL(w.url)
	w.ok(err)
	client := goredis.NewClient(o)
	client.AddHook(hook)
	d, err := redisstream.New(w.ctx(), redisstream.Options{Client: client, Prefix: w.prefix})
	w.ok(err)
	w.Cleanup(func() {
		if err := errors.Join(d.Close(context.Background()), client.Close()); err != nil {
			w.Error(err)
		}
	})
	return d
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	w.Cleanup(cancel)
	return ctx
}

func (w *world) publish(from, to int, key string) {
	w.Helper()
	var ms []*driver.Message
	for i := from; i < to; i++ {
		ms = append(ms, &driver.Message{ID: fmt.Sprintf("m%04d", i), Topic: "jobs", Key: key, Body: fmt.Append(nil, i)})
	}
	_, err := w.d.Publish(w.ctx(), ms, driver.PublishOptions{})
	w.ok(err)
}

func (w *world) subscribe(instance string, lease time.Duration) driver.Subscription {
	w.Helper()
	s, err := w.d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: instance, Lease: lease})
	w.ok(err)
	return s
}

func (w *world) take(s driver.Subscription, n int) []*driver.Delivery {
	w.Helper()
	var all []*driver.Delivery
	for len(all) < n {
		ds, err := s.Receive(w.ctx(), n-len(all))
		w.ok(err)
		all = append(all, ds...)
	}
	return all
}

func (w *world) settle(s driver.Subscription, o driver.Outcome, ds ...*driver.Delivery) {
	w.Helper()
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = driver.Settlement{Delivery: d, Outcome: o, After: time.Hour}
	}
	w.ok(errors.Join(s.Settle(w.ctx(), ss)...))
}

func (w *world) stream(partition int) string {
	return fmt.Sprintf("{%s/jobs/%d}:stream", w.prefix, partition)
}

func (w *world) onePartition() {
	w.Helper()
	w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1}))
}

// owners returns who owns the partitions.
func (w *world) owners() []string {
	w.Helper()
	var all []string
	for i := range redisstream.DefaultPartitions {
		all = append(all, w.c.HGet(w.ctx(), fmt.Sprintf("{%s/jobs/%d}:g:default:owner", w.prefix, i), "member").Val())
	}
	return all
}

func distinct(list []string) map[string]int {
	m := map[string]int{}
	for _, x := range list {
		m[x]++
	}
	return m
}

// until waits for what must become true.
func (w *world) until(what string, cond func() bool) {
	w.Helper()
	for ctx := w.ctx(); !cond(); {
		select {
		case <-ctx.Done():
			w.Fatalf("waited in vain: %s; owners %v", what, w.owners())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func settlements(ds []*driver.Delivery) []driver.Settlement {
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i].Delivery = d
	}
	return ss
}

// sound demands that an audit finds nothing.
func (w *world) sound() {
	w.Helper()
	report, err := w.d.Audit(w.ctx(), "jobs", false)
	w.ok(err)
	if len(report.Problems) > 0 {
		w.Errorf("audit: %+v", report.Problems)
	}
	if bad := report.Stats.Unbalanced(); len(bad) > 0 {
		w.Errorf("unbalanced: %v", bad)
	}
}
