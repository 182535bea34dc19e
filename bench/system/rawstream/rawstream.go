// Package rawstream is the limit for a log on Redis Streams: XADD, XREADGROUP, XACK and XDEL, pipelined.
//
// It has one stream and no recovery: what remains above it is the price of order by key, retries, delays and fencing.
package rawstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/bench/system/redisserver"
)

const (
	stream = "bench"
	group  = "default"
	// readers each have a connection and a request under way: as many as our driver alone is measured with.
	readers   = 4
	readBatch = 100
	// poolSize is the most connections of all publishers, as many as those of ours have by default on two cores.
	poolSize   = 20
	waitAtMost = 500 * time.Millisecond
)

// System is one stream with a group.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw streams", Version: "go-redis " + system.ModuleVersion("github.com/redis/go-redis/v9"),
		Settings: fmt.Sprintf("%s; publish: XADD, pipelined where there are many; drain: %d readers, each XREADGROUP of "+
			"%d, handlers, then XACK and XDEL in one pipeline with the next XREADGROUP",
			redisserver.Settings, readers, readBatch),
		Why: "the least any log on a stream must send, in as few round trips, with as many connections as ours; nothing is " +
			"recovered from a reader that dies",
	}
}

// Lacks says what a stream cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "a pipeline is a batch"
	case system.Delays, system.Keys, system.Retries:
		return "a stream has no " + string(f)
	case system.Restarts:
		return "the server keeps the messages"
	}
	return ""
}

// Open starts a Redis and makes the group.
func (System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	server, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: poolSize})
	if err := client.XGroupCreateMkStream(ctx, stream, group, "0").Err(); err != nil {
		return nil, errors.Join(err, client.Close(), server.Close())
	}
	return &session{server: server, client: client}, nil
}

type session struct {
	server *redisserver.Server
	client *redis.Client
}

func (s *session) Publisher() system.Publisher { return &publisher{client: s.client} }

func (s *session) Usage() (system.Usage, error) { return s.server.Usage() }

func (s *session) Close() error { return errors.Join(s.client.Close(), s.server.Close()) }

// Settled waits until no entry is left: each is deleted after it was acknowledged.
func (s *session) Settled(ctx context.Context) error {
	for {
		n, err := s.client.XLen(ctx, stream).Result()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d entries are left: %w", n, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// Consume starts the readers. Each runs its handlers itself, unless a scenario wants more at once.
func (s *session) Consume(ctx context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	ctx, cancel := context.WithCancel(ctx)
	n, batch := readers, int64(readBatch)
	if o.Concurrency > 0 {
		n, batch = o.Concurrency, 1
	}
	client := redis.NewClient(&redis.Options{Addr: s.server.Addr(), PoolSize: n})
	c := &consumer{client: client, handle: h, batch: batch, cancel: cancel, errs: make([]error, n)}
	for i := range n {
		c.running.Go(func() { c.errs[i] = c.read(ctx, strconv.Itoa(i)) })
	}
	return c, nil
}

type consumer struct {
	client  *redis.Client
	handle  system.Handler
	batch   int64
	cancel  context.CancelFunc
	running sync.WaitGroup
	errs    []error
}

func (c *consumer) Stop(context.Context) error {
	c.cancel()
	c.running.Wait()
	return errors.Join(errors.Join(c.errs...), c.client.Close())
}

// read takes batches until ctx ends. What a batch has taken it also handles, acknowledges and deletes.
func (c *consumer) read(ctx context.Context, name string) error {
	whole := context.WithoutCancel(ctx)
	var done []string
	for {
		block := time.Duration(-1) // with something to acknowledge the pipeline does not wait
		if len(done) == 0 {
			block = waitAtMost
		}
		last := ctx.Err() != nil
		taken, err := c.exchange(whole, name, done, block, last)
		if err != nil || last {
			return err
		}
		done = done[:0]
		for _, m := range taken {
			body, ok := m.Values["body"].(string)
			if !ok {
				return fmt.Errorf("entry %s has no body", m.ID)
			}
			if err := c.handle([]byte(body)); err != nil {
				return err
			}
			done = append(done, m.ID)
		}
	}
}

// exchange acknowledges and deletes what is done, and takes the next, in one round trip.
func (c *consumer) exchange(ctx context.Context, name string, done []string, block time.Duration,
	last bool) ([]redis.XMessage, error) {
	pipe := c.client.Pipeline()
	if len(done) > 0 {
		pipe.XAck(ctx, stream, group, done...)
		pipe.XDel(ctx, stream, done...)
	}
	var next *redis.XStreamSliceCmd
	if !last {
		next = pipe.XReadGroup(ctx, &redis.XReadGroupArgs{Group: group, Consumer: name, Streams: []string{stream, ">"},
			Count: c.batch, Block: block})
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	if next == nil || len(next.Val()) == 0 {
		return nil, nil
	}
	return next.Val()[0].Messages, nil
}

type publisher struct{ client *redis.Client }

// KeepsBodies is false: a pipeline is sent before it returns.
func (p *publisher) KeepsBodies() bool { return false }

func add(m system.Message) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: stream, Values: []any{"body", m.Body}}
}

func (p *publisher) Publish(ctx context.Context, m system.Message) error {
	return p.client.XAdd(ctx, add(m)).Err()
}

func (p *publisher) PublishBatch(ctx context.Context, ms []system.Message) error {
	pipe := p.client.Pipeline()
	for _, m := range ms {
		pipe.XAdd(ctx, add(m))
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (p *publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p *publisher) Flush(context.Context) error { return nil }
