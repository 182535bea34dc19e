// Package asynq is the peer asynq: a task queue for Go on Redis.
package asynq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/redisserver"
)

const (
	queue    = "default"
	taskType = "bench"
	// servers share the queue: each takes one task at a time from Redis, so that several are faster.
	servers = 4
	// handlers are what all servers together run at once, where a scenario does not say.
	handlers = 80
	// checkEvery is how often an idle server looks for tasks, and for tasks that are due.
	checkEvery = 10 * time.Millisecond
	// poolSize is the most connections of each client.
	poolSize = 50
)

// System is asynq on a Redis of its own.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "asynq", Version: system.ModuleVersion("github.com/hibiken/asynq"),
		Settings: fmt.Sprintf("%s; one client with a pool of %d connections for all publishers; %d servers on one queue, "+
			"Concurrency %d in all, TaskCheckInterval and DelayedTaskCheckInterval %v, "+
			"LogLevel fatal, no retention", redisserver.Settings, poolSize, servers, handlers, checkEvery),
		Why: "a server takes tasks one by one, so that several drain faster than one with more concurrency; the two " +
			"intervals are its documented means against slow pickup (1 s by default) " +
			"and late delays (5 s), at the price of commands while idle; it has no call for batches and none without waiting; " +
			"other numbers of servers and handlers were not tried",
	}
}

// Lacks says what asynq cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Batches:
		return "asynq enqueues one task at a time"
	case system.Async:
		return "Enqueue waits for Redis"
	case system.Keys:
		return "asynq does not order by key"
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
	conn := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: poolSize})
	return &session{server: server, conn: conn, client: asynq.NewClientFromRedisClient(conn),
		inspector: asynq.NewInspectorFromRedisClient(conn)}, nil
}

type session struct {
	server    *redisserver.Server
	conn      *redis.Client
	client    *asynq.Client
	inspector *asynq.Inspector
}

func (s *session) Publisher() system.Publisher { return publisher{s.client} }

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

func (s *session) Close() error { return errors.Join(s.conn.Close(), s.server.Close()) }

// Settled waits until asynq itself counts no task any more, in whatever state.
func (s *session) Settled(ctx context.Context) error {
	for {
		info, err := s.inspector.GetQueueInfo(queue)
		if err != nil {
			return err
		}
		if info.Size == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d tasks are left (%d active, %d archived): %w", info.Size, info.Active, info.Archived, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Consume starts the servers.
func (s *session) Consume(_ context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	total := o.Concurrency
	if total == 0 {
		total = handlers
	}
	handle := asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error { return h(t.Payload()) })
	c := &consumer{}
	for i := range min(servers, total) {
		server := asynq.NewServer(asynq.RedisClientOpt{Addr: s.server.Addr(), PoolSize: poolSize}, asynq.Config{
			Concurrency: (total + i) / min(servers, total), TaskCheckInterval: checkEvery, DelayedTaskCheckInterval: checkEvery,
			LogLevel:       asynq.FatalLevel,
			RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return o.RetryAfter },
		})
		if err := server.Start(handle); err != nil {
			return nil, errors.Join(err, c.Stop(context.Background()))
		}
		c.servers = append(c.servers, server)
	}
	return c, nil
}

type consumer struct{ servers []*asynq.Server }

// Stop lets all servers stop fetching before it waits for any of them.
func (c *consumer) Stop(context.Context) error {
	for _, s := range c.servers {
		s.Stop()
	}
	for _, s := range c.servers {
		s.Shutdown()
	}
	return nil
}
