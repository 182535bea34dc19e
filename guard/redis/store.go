package redis

import (
	"context"
	"crypto/rand"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Options of a Store. One of URL and Client is required.
type Options struct {
	// URL says where the server is, as for package driver/redis.
	URL string
	// Client is used instead of URL. It is never closed by the store.
	Client goredis.UniversalClient
	// Prefix begins every key: stores with the same prefix are one. Defaults to "ferry".
	Prefix string
	// Timeout is how long a call waits for the server. Defaults to 2 s.
	Timeout time.Duration
}

// Store keeps the state of guards in Redis.
type Store struct {
	client goredis.UniversalClient
	owned  bool
	closed atomic.Bool
	prefix string
	keys   keys
	// nonce and counter name requests and holders: no two processes, nor two lives of one, share a name.
	nonce   string
	counter atomic.Uint64
	timeout time.Duration

	takes *combiner[taking, guard.Verdict]
	slots *combiner[slotting, store.Slot]
	marks *combiner[marking, store.Mark]
}

var _ guard.Store = (*Store)(nil)

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// Open connects to the server and returns a store.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = "ferry"
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	switch {
	case (o.URL == "") == (o.Client == nil):
		return nil, driver.NewError(driver.ErrInvalid, "one of URL and Client must be given",
			"set Options.URL, or Options.Client to use a client of your own", nil)
	case !validPrefix.MatchString(o.Prefix):
		return nil, driver.NewError(driver.ErrInvalid, "the key prefix is not allowed",
			"use 1 to 64 letters, digits, '.', '_', ':' or '-', beginning with a letter or digit", nil)
	case o.Timeout < 0:
		return nil, driver.NewError(driver.ErrInvalid, "the timeout is negative", "leave it zero for the default", nil)
	}
	s := &Store{client: o.Client, prefix: o.Prefix, keys: keys{tag: "{" + o.Prefix + ":guard}"},
		nonce: rand.Text()[:16], timeout: o.Timeout}
	if s.client == nil {
		client, err := redisconn.Connect(o.URL)
		if err != nil {
			return nil, err
		}
		s.client, s.owned = client, true
	}
	if _, err := redisconn.Examine(ctx, s.client, s.keys.tag); err != nil {
		_ = s.Close(ctx)
		return nil, err
	}
	s.takes = newCombiner(s.sendTakes)
	s.slots = newCombiner(s.sendSlots)
	s.marks = newCombiner(s.sendMarks)
	return s, nil
}

// Prefix begins every key of the store.
func (s *Store) Prefix() string { return s.prefix }

// Close ends the connections, unless the client is the caller's.
func (s *Store) Close(context.Context) error {
	if s.owned && !s.closed.Swap(true) {
		return s.client.Close()
	}
	return nil
}

// next returns a number for a request or a holder.
func (s *Store) next() uint64 { return s.counter.Add(1) }

// name is how the server calls what has that number.
func (s *Store) name(n uint64) string { return s.nonce + strconv.FormatUint(n, 36) }

// keys names everything in the store. All share one hash tag.
type keys struct{ tag string }

func (k keys) account(limit, key string) string { return k.tag + ":a:" + limit + ":" + key }
func (k keys) window(limit, key string) string  { return k.tag + ":w:" + limit + ":" + key }
func (k keys) waits(limit, key string) string   { return k.tag + ":v:" + limit + ":" + key }
func (k keys) slots(limit, key string) string   { return k.tag + ":s:" + limit + ":" + key }
func (k keys) mark(name, id string) string      { return k.tag + ":m:" + name + ":" + id }
func (k keys) index(kind guard.Kind) string     { return k.tag + ":i:" + string(kind) }
func (k keys) rules() string                    { return k.tag + ":rules" }
func (k keys) audit() string                    { return k.tag + ":audit" }
func (k keys) forced() string                   { return k.tag + ":forced" }
func (k keys) reports() string                  { return k.tag + ":reports" }
func (k keys) reporters() string                { return k.tag + ":reporters" }
