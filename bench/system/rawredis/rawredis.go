// Package rawredis is the limit for a queue on Redis: bodies in a hash, their ids in a list, pipelined.
//
// It leases nothing and loses what a crashed reader had taken: what remains above it is the price of a queue.
package rawredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/redisserver"
)

const (
	bodies = "bodies" // hash: id → body
	ids    = "ids"    // list
	// readers each have a connection and a request under way: as many as our driver alone is measured with.
	readers   = 4
	readBatch = 100
	// poolSize is the most connections of all publishers, as many as those of ours have by default on two cores.
	poolSize   = 20
	waitAtMost = time.Second
)

// System is a hash and a list.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw Redis", Version: "go-redis " + system.ModuleVersion("github.com/redis/go-redis/v9"),
		Settings: fmt.Sprintf("%s; publish: HSET and RPUSH in one pipeline; drain: %d readers, each LPOP of %d ids, HMGET, "+
			"handlers, then HDEL with the next LPOP in one pipeline; BLPOP while there is nothing",
			redisserver.Settings, readers, readBatch),
		Why: "the least any queue with ids and bodies must send, in as few round trips, with as many connections as ours; " +
			"no lease, no acknowledgement that survives a crash",
	}
}

// Lacks says what two structures cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "a pipeline is a batch"
	case system.Delays, system.Keys, system.Retries:
		return "a list has no " + string(f)
	case system.Restarts:
		return "the server keeps the messages"
	}
	return ""
}

// Open starts a Redis.
func (System) Open(context.Context, system.Options) (system.Session, error) {
	server, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	return &session{server: server, client: redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: poolSize})}, nil
}

type session struct {
	server *redisserver.Server
	client *redis.Client
	lastID atomic.Uint64
}

func (s *session) Publisher() system.Publisher { return &publisher{session: s} }

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

func (s *session) Close() error { return errors.Join(s.client.Close(), s.server.Close()) }

// Settled waits until no body is left.
func (s *session) Settled(ctx context.Context) error {
	for {
		n, err := s.client.HLen(ctx, bodies).Result()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d bodies are left: %w", n, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Consume starts the readers. Each runs its handlers itself, unless a scenario wants more at once.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	n, batch := readers, readBatch
	if o.Concurrency > 0 {
		n, batch = o.Concurrency, 1
	}
	client := redis.NewClient(&redis.Options{Addr: s.server.Addr(), PoolSize: n})
	c := &consumer{client: client, handle: h, batch: batch, cancel: cancel, errs: make([]error, n)}
	for i := range n {
		c.running.Go(func() { c.errs[i] = c.read(ctx) })
	}
	return c, nil
}

type consumer struct {
	client  *redis.Client
	handle  system.Handler
	batch   int
	cancel  context.CancelFunc
	running sync.WaitGroup
	errs    []error
}

func (c *consumer) Stop(context.Context) error {
	c.cancel()
	c.running.Wait()
	return errors.Join(errors.Join(c.errs...), c.client.Close())
}
