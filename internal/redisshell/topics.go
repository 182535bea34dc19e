package redisshell

import (
	"cmp"
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

// Topic is what a driver knows of one: its name, and its parts, which are shards or partitions.
type Topic[P any] struct {
	Name  string
	Parts []P
}

// Each does something with all parts, until it fails.
func (t *Topic[P]) Each(do func(P) error) error {
	for _, part := range t.Parts {
		if err := do(part); err != nil {
			return err
		}
	}
	return nil
}

// For returns the part that a message goes to.
func (t *Topic[P]) For(m *driver.Message, turn uint64) P {
	return t.Parts[partFor(m, turn, len(t.Parts))]
}

// TopicKind says what a driver does with topics that it has not met yet, and with their parts.
type TopicKind[P any] struct {
	Part   string                                // what a part is called
	Parts  int                                   // how many a new one has, unless somebody asks for another number
	New    func(t *Topic[P], index, parts int) P // a part of one that is in the registry
	Check  func(P, context.Context) error        // says what is wrong with a part before it is used; may be nil
	Create func(P, context.Context) error        // makes a part of one that is new
	Known  func(*Topic[P])                       // hears of each that is known from now on; may be nil
	// Join creates a group in a part, or only if there is none at all, and returns the names of all groups.
	Join func(part P, ctx context.Context, group string, only bool) ([]string, error)
}

// Topics are those of a driver: the registry, which has their names and how many parts each has in a slot of its own,
// and what this process knows of those that it has met.
type Topics[P any] struct {
	kind   TopicKind[P]
	client goredis.UniversalClient
	key    string
	refuse func() error
	// why nothing can be published
	refusePublish func(context.Context, driver.PublishOptions) error

	mu    sync.Mutex
	known map[string]*Topic[P]
}

// NewTopics returns the topics of a shell.
func NewTopics[S Subscription, P any](s *Shell[S], kind TopicKind[P]) *Topics[P] {
	return &Topics[P]{kind: kind, client: s.Client, key: s.registry, refuse: s.Refuse, refusePublish: s.RefusePublish,
		known: map[string]*Topic[P]{}}
}

// Make returns a topic of so many parts, of which nothing is known yet.
func (r *Topics[P]) Make(name string, parts int) *Topic[P] {
	t := &Topic[P]{Name: name}
	for i := range parts {
		t.Parts = append(t.Parts, r.kind.New(t, i, parts))
	}
	return t
}

// Create makes the parts of a topic that is in the registry.
func (r *Topics[P]) Create(ctx context.Context, t *Topic[P]) error {
	return t.Each(func(part P) error { return r.kind.Create(part, ctx) })
}

// Lookup returns a topic that exists, or nil.
func (r *Topics[P]) Lookup(ctx context.Context, name string) (*Topic[P], error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	t := r.known[name]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := r.registered(ctx, name)
	if err != nil || t == nil {
		return nil, err
	}
	return r.Learn(t), nil
}

// registered makes what is known of a topic that is in the registry, or nil.
func (r *Topics[P]) registered(ctx context.Context, name string) (*Topic[P], error) {
	said, err := r.client.HGet(ctx, r.key, name).Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1 || n > MostParts {
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("the registry says that topic %q has %.20q %ss", name, said, r.kind.Part),
			"something else writes to "+r.key+"; set the field to the right number, or use another Options.Prefix", nil)
	}
	t := r.Make(name, n)
	if r.kind.Check != nil {
		err = t.Each(func(part P) error { return r.kind.Check(part, ctx) })
	}
	return t, err
}

// Learn remembers a topic, unless the same is known, and returns the one that is.
func (r *Topics[P]) Learn(t *Topic[P]) *Topic[P] {
	r.mu.Lock()
	if known := r.known[t.Name]; known != nil && len(known.Parts) == len(t.Parts) {
		t = known
	}
	r.known[t.Name] = t
	r.mu.Unlock()
	if r.kind.Known != nil {
		r.kind.Known(t)
	}
	return t
}

// Forget drops what is known of a topic, because it is not true any more.
func (r *Topics[P]) Forget(t *Topic[P]) {
	r.mu.Lock()
	if r.known[t.Name] == t {
		delete(r.known, t.Name)
	}
	r.mu.Unlock()
}

// Existing returns a topic, or ErrNotFound. What the caller has checked of its own input before, and found wrong, is
// returned instead.
func (r *Topics[P]) Existing(ctx context.Context, name string, checked ...error) (*Topic[P], error) {
	for _, err := range append(checked, driver.CheckName("topic", name)) {
		if err != nil {
			return nil, err
		}
	}
	t, err := r.Lookup(ctx, name)
	if err != nil || t != nil {
		return t, err
	}
	names, _ := r.Names(ctx)
	return nil, driver.NoTopic(name, slices.DeleteFunc(names, driver.Reserved))
}

// Ensure returns a topic. One that does not exist is created with so many parts, 0 for as many as a new one has: first
// in the registry, then the parts. Both may be repeated.
func (r *Topics[P]) Ensure(ctx context.Context, name string, parts int) (*Topic[P], error) {
	t, err := r.Lookup(ctx, name)
	if err != nil || t != nil {
		return t, err
	}
	if err := driver.CheckName("topic", name); err != nil {
		return nil, err
	}
	if err := r.client.HSetNX(ctx, r.key, name, cmp.Or(parts, r.kind.Parts)).Err(); err != nil {
		return nil, redisconn.Classify(err)
	}
	if t, err = r.registered(ctx, name); err == nil && t == nil {
		err = ErrStale
	}
	if err == nil {
		err = r.Create(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	return r.Learn(t), nil
}

// Again finds a topic that turned out to be stale. One that is in the registry may lack parts: whoever creates it has
// not come so far, or never will.
func (r *Topics[P]) Again(ctx context.Context, t *Topic[P]) (again *Topic[P], err error) {
	r.Forget(t)
	if again, err = r.Ensure(ctx, t.Name, 0); err == nil {
		err = r.Create(ctx, again)
	}
	return again, err
}

// AgainPart is Again of one part. Where the number of parts has changed, what went to it may go to another one now.
func (r *Topics[P]) AgainPart(ctx context.Context, t *Topic[P], index int) (P, error) {
	again, err := r.Again(ctx, t)
	if err == nil && len(again.Parts) != len(t.Parts) {
		err = ErrStale
	}
	if err != nil {
		return t.Parts[index], err
	}
	return again.Parts[index], nil
}

// StaleTries bounds how often something is tried again because a topic changed meanwhile.
const StaleTries = 5

// With does something with a topic, which is created if it does not exist, again while that says ErrStale. It returns
// the topic that it was done with.
func (r *Topics[P]) With(ctx context.Context, name string, parts int, do func(*Topic[P]) error) (*Topic[P], error) {
	t, err := r.Ensure(ctx, name, parts)
	for try := 1; err == nil; try++ {
		if err = do(t); !errors.Is(err, ErrStale) || try == StaleTries {
			return t, err
		}
		t, err = r.Again(ctx, t)
	}
	return nil, err
}

// Prepare gives a topic without groups the default one, and all parts the groups that the first one has.
func (r *Topics[P]) Prepare(ctx context.Context, t *Topic[P]) error {
	names, err := r.kind.Join(t.Parts[0], ctx, driver.DefaultGroup, true)
	for _, part := range t.Parts[1:] {
		for _, name := range names {
			if err == nil {
				_, err = r.kind.Join(part, ctx, name, false)
			}
		}
	}
	return err
}

// ErrStale says that a topic was deleted, or made anew with other parts.
var ErrStale = driver.NewError(driver.ErrNotApplied, "the topic was deleted or made anew meanwhile", "try again", nil)

// Gone forgets a topic that turned out to be deleted, and says so.
func (r *Topics[P]) Gone(t *Topic[P]) error {
	r.Forget(t)
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", t.Name),
		"it was deleted meanwhile", nil)
}

// Remove takes a topic out of the registry. Its parts are gone.
func (r *Topics[P]) Remove(ctx context.Context, t *Topic[P]) error {
	r.Forget(t)
	return redisconn.Classify(r.client.HDel(ctx, r.key, t.Name).Err())
}

// Resize gives a topic another number of parts in the registry.
func (r *Topics[P]) Resize(ctx context.Context, t *Topic[P], parts int) error {
	return redisconn.Classify(r.client.HSet(ctx, r.key, t.Name, parts).Err())
}

// Names returns these names, or those in the registry if there are none, in order.
func (r *Topics[P]) Names(ctx context.Context, names ...string) ([]string, error) {
	if len(names) == 0 {
		var err error
		if names, err = r.client.HKeys(ctx, r.key).Result(); err != nil {
			return nil, redisconn.Classify(err)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}

// All returns the topics of these names that exist, or all, in order.
func (r *Topics[P]) All(ctx context.Context, names ...string) (all []*Topic[P], _ error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	names, err := r.Names(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t, err := r.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if t != nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// partFor is to which of a number of parts a message goes: by its key, else by its dedup id or its producer's own, so
// that repeats meet, else in turn.
func partFor(m *driver.Message, turn uint64, parts int) int {
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
