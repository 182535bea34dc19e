package redisshell

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// MostParts is into how many parts, shards or partitions, a topic may be divided.
const MostParts = 1024

// Topic is what a driver knows of one. Two that are equal are the same.
type Topic interface {
	comparable
	Name() string
	Parts() int
}

// TopicKind says what a driver does with topics that it has not met yet.
type TopicKind[T Topic] struct {
	Part   string                               // what a part is called
	New    func(name string, parts int) T       // one that is in the registry
	Check  func(context.Context, T) error       // says what is wrong with one before it is used; may be nil
	Create func(ctx context.Context, t T) error // makes the parts of one that is new
	Known  func(T)                              // hears of each that is known from now on; may be nil
}

// Topics are those of a driver: the registry, which has their names and how many parts each has in a slot of its own,
// and what this process knows of those that it has met.
type Topics[T Topic] struct {
	kind   TopicKind[T]
	client goredis.UniversalClient
	key    string
	refuse func() error

	mu    sync.Mutex
	known map[string]T
}

// NewTopics returns the topics of a shell.
func NewTopics[S Subscription, T Topic](s *Shell[S], kind TopicKind[T]) *Topics[T] {
	return &Topics[T]{kind: kind, client: s.Client, key: s.registry, refuse: s.Refuse, known: map[string]T{}}
}

// Lookup returns a topic that exists, or the zero value.
func (r *Topics[T]) Lookup(ctx context.Context, name string) (none T, _ error) {
	if err := r.refuse(); err != nil {
		return none, err
	}
	r.mu.Lock()
	t := r.known[name]
	r.mu.Unlock()
	if t != none {
		return t, nil
	}
	t, err := r.registered(ctx, name)
	if err != nil || t == none {
		return none, err
	}
	return r.Learn(t), nil
}

// registered makes what is known of a topic that is in the registry, or the zero value.
func (r *Topics[T]) registered(ctx context.Context, name string) (none T, _ error) {
	said, err := r.client.HGet(ctx, r.key, name).Result()
	if errors.Is(err, goredis.Nil) {
		return none, nil
	}
	if err != nil {
		return none, redisconn.Classify(err)
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 || n > MostParts {
		return none, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("the registry says that topic %q has %.20q %ss", name, said, r.kind.Part),
			"something else writes to "+r.key+"; set the field to the right number, or use another Options.Prefix", nil)
	}
	t := r.kind.New(name, n)
	if r.kind.Check != nil {
		err = r.kind.Check(ctx, t)
	}
	return t, err
}

// Learn remembers a topic, unless the same is known, and returns the one that is.
func (r *Topics[T]) Learn(t T) T {
	var none T
	r.mu.Lock()
	if known := r.known[t.Name()]; known != none && known.Parts() == t.Parts() {
		t = known
	}
	r.known[t.Name()] = t
	r.mu.Unlock()
	if r.kind.Known != nil {
		r.kind.Known(t)
	}
	return t
}

// Forget drops what is known of a topic, because it is not true any more.
func (r *Topics[T]) Forget(t T) {
	r.mu.Lock()
	if r.known[t.Name()] == t {
		delete(r.known, t.Name())
	}
	r.mu.Unlock()
}

// Existing returns a topic, or ErrNotFound. What the caller has checked of its own input before, and found wrong, is
// returned instead.
func (r *Topics[T]) Existing(ctx context.Context, name string, checked ...error) (none T, _ error) {
	for _, err := range append(checked, driver.CheckName("topic", name)) {
		if err != nil {
			return none, err
		}
	}
	t, err := r.Lookup(ctx, name)
	if err != nil || t != none {
		return t, err
	}
	names, _ := r.Names(ctx)
	return none, driver.NoTopic(name, slices.DeleteFunc(names, driver.Reserved))
}

// Ensure returns a topic. One that does not exist is created with so many parts: first in the registry, then the
// parts. Both may be repeated.
func (r *Topics[T]) Ensure(ctx context.Context, name string, parts int) (none T, _ error) {
	t, err := r.Lookup(ctx, name)
	if err != nil || t != none {
		return t, err
	}
	if err := driver.CheckName("topic", name); err != nil {
		return none, err
	}
	if err := r.client.HSetNX(ctx, r.key, name, parts).Err(); err != nil {
		return none, redisconn.Classify(err)
	}
	if t, err = r.registered(ctx, name); err == nil && t == none {
		err = ErrStale
	}
	if err == nil {
		err = r.kind.Create(ctx, t)
	}
	if err != nil {
		return none, err
	}
	return r.Learn(t), nil
}

// ErrStale says that a topic was deleted, or made anew with other parts.
var ErrStale = driver.NewError(driver.ErrNotApplied, "the topic was deleted or made anew meanwhile", "try again", nil)

// Remove takes a topic out of the registry. Its parts are gone.
func (r *Topics[T]) Remove(ctx context.Context, t T) error {
	r.Forget(t)
	return redisconn.Classify(r.client.HDel(ctx, r.key, t.Name()).Err())
}

// Resize gives a topic another number of parts in the registry.
func (r *Topics[T]) Resize(ctx context.Context, t T, parts int) error {
	return redisconn.Classify(r.client.HSet(ctx, r.key, t.Name(), parts).Err())
}

// Names returns these names, or those in the registry if there are none, in order.
func (r *Topics[T]) Names(ctx context.Context, names ...string) ([]string, error) {
	if len(names) == 0 {
		var err error
		if names, err = r.client.HKeys(ctx, r.key).Result(); err != nil {
			return nil, redisconn.Classify(err)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// All returns the topics of these names that exist, or all, in order.
func (r *Topics[T]) All(ctx context.Context, names ...string) (all []T, _ error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	names, err := r.Names(ctx, names...)
	if err != nil {
		return nil, err
	}
	var none T
	for _, name := range names {
		t, err := r.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if t != none {
			all = append(all, t)
		}
	}
	return all, nil
}

// PartFor is to which of a number of parts a message goes: by its key, else by its dedup id or its producer's own, so
// that repeats meet, else in turn.
func PartFor(m *driver.Message, turn uint64, parts int) int {
	by := m.Key
	switch {
	case parts == 1:
		return 0
	case by != "":
	case m.DedupID != "":
		by = m.DedupID
	case m.OwnID:
		by = m.ID
	default:
		return int(turn % uint64(parts))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(by))
	return int(h.Sum64() % uint64(parts))
}
