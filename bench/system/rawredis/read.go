package rawredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// read takes batches until ctx ends. What a batch has taken it also handles and deletes.
func (c *consumer) read(ctx context.Context) error {
	whole := context.WithoutCancel(ctx)
	var done []string
	for {
		taken, err := c.take(whole, done)
		done = nil
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			if taken, err = c.wait(ctx); err != nil || taken == nil && ctx.Err() != nil {
				return err
			}
		}
		if len(taken) == 0 {
			continue
		}
		if err := c.work(whole, taken); err != nil {
			return err
		}
		if done = taken; ctx.Err() != nil {
			return c.client.HDel(whole, bodies, done...).Err()
		}
	}
}

// take deletes what is done and takes the next ids, in one round trip.
func (c *consumer) take(ctx context.Context, done []string) ([]string, error) {
	pipe := c.client.Pipeline()
	if len(done) > 0 {
		pipe.HDel(ctx, bodies, done...)
	}
	next := pipe.LPopCount(ctx, ids, c.batch)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return next.Val(), nil
}

// wait returns the next id when there is one, or nothing after a while.
func (c *consumer) wait(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	// Not with ctx: an id that is popped while the caller gives up would be lost.
	popped, err := c.client.BLPop(context.WithoutCancel(ctx), waitAtMost, ids).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return popped[1:], nil
}

// work reads the bodies and handles them.
func (c *consumer) work(ctx context.Context, taken []string) error {
	found, err := c.client.HMGet(ctx, bodies, taken...).Result()
	if err != nil {
		return err
	}
	for i, body := range found {
		text, ok := body.(string)
		if !ok {
			return fmt.Errorf("the body of %s is missing", taken[i])
		}
		if err := c.handle([]byte(text)); err != nil {
			return err
		}
	}
	return nil
}
