package registry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry/codec"
)

// How long a failure is told again without asking, so that a registry that is away is not asked for every message.
const (
	keepUnavailable = time.Second
	keepRefused     = 5 * time.Second
	maxFailures     = 1000 // bodies may name any id
)

// cache keeps what the registry said for ever, since schemas do not change, and asks once for callers that want the
// same. The zero value is ready to use.
type cache[K comparable, V any] struct {
	mu     sync.Mutex
	known  map[K]V
	failed map[K]failure
	calls  map[K]*call[V]
}

type failure struct {
	err   error
	until time.Time
}

// call is one request under way. Its fields are written before done is closed.
type call[V any] struct {
	done  chan struct{}
	value V
	err   error
	gone  bool // its caller gave up, which says nothing about the registry
}

// get returns what is known of key, or what load says. A caller that waits for the call of another leaves when its own
// context ends.
func (c *cache[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, error)) (value V, err error) {
	for {
		mine, other, v, err := c.begin(key)
		switch {
		case mine != nil:
			return c.run(ctx, key, mine, load)
		case other == nil:
			return v, err
		}
		select {
		case <-other.done:
			if !other.gone {
				return other.value, other.err
			}
		case <-ctx.Done():
			return value, unavailable("waiting for the registry", context.Cause(ctx))
		}
	}
}

// begin returns a call to make, or one of another caller to wait for, or what is known.
func (c *cache[K, V]) begin(key K) (mine, other *call[V], value V, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.known[key]; ok {
		return nil, nil, v, nil
	}
	if f, ok := c.failed[key]; ok && time.Now().Before(f.until) {
		return nil, nil, value, f.err
	}
	if other, ok := c.calls[key]; ok {
		return nil, other, value, nil
	}
	if c.calls == nil {
		c.known, c.failed, c.calls = map[K]V{}, map[K]failure{}, map[K]*call[V]{}
	}
	mine = &call[V]{done: make(chan struct{}), gone: true} // also if load panics
	c.calls[key] = mine
	return mine, nil, value, nil
}

func (c *cache[K, V]) run(ctx context.Context, key K, mine *call[V], load func(context.Context) (V, error)) (V, error) {
	defer c.end(key, mine)
	mine.value, mine.err = load(ctx)
	mine.gone = mine.err != nil && ctx.Err() != nil
	return mine.value, mine.err
}

func (c *cache[K, V]) end(key K, mine *call[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, key)
	delete(c.failed, key)
	switch {
	case mine.gone:
	case mine.err == nil:
		c.known[key] = mine.value
	default:
		if len(c.failed) >= maxFailures {
			clear(c.failed)
		}
		keep := keepRefused
		if errors.Is(mine.err, codec.ErrUnavailable) {
			keep = keepUnavailable
		}
		c.failed[key] = failure{mine.err, time.Now().Add(keep)}
	}
	close(mine.done)
}
