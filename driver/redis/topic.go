package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// topic is what this process knows about one.
type topic struct {
	name   string
	shards []*shard
}

// shard is one hash slot's worth of a topic.
type shard struct {
	d     *Driver
	topic string
	index int
	of    string // how many shards the topic has
	tag   string
	keys  []string // of the topic

	bounded atomic.Bool  // it had a bound when it was last looked at
	moved   atomic.Int64 // messages that came or went through this process since it was last tidied

	mu    sync.Mutex
	known *groups
}

// groups is the set of groups of a shard at one epoch. It does not change.
type groups struct {
	epoch string
	names []string // in the order in which scripts know them
	keys  []string // of the topic and of all groups
	plain []string // those that lua/plain.lua needs
}

func (d *Driver) newTopic(name string, shards int) *topic {
	t := &topic{name: name}
	for i := range shards {
		tag := tagOf(d.o.Prefix, name, i)
		s := &shard{d: d, topic: name, index: i, of: strconv.Itoa(shards), tag: tag, keys: keysOfTopic(tag)}
		s.known = &groups{keys: s.keys}
		t.shards = append(t.shards, s)
	}
	return t
}

// Name and Parts are what the registry has of it.
func (t *topic) Name() string { return t.name }

// Parts is the number of shards.
func (t *topic) Parts() int { return len(t.shards) }

// shardFor returns where a message belongs. One that nothing binds goes where the caller's turn is.
func (t *topic) shardFor(m *driver.Message, turn uint64) *shard {
	return t.shards[redisshell.PartFor(m, turn, len(t.shards))]
}

// groups returns what is known of the groups, perhaps outdated.
func (s *shard) groups() *groups {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// learn notes the groups of the shard.
func (s *shard) learn(epoch, names string) *groups {
	g := &groups{epoch: epoch, names: strings.Fields(names), keys: slices.Clone(s.keys)}
	for _, key := range []int{keyTopic, keyBodies, keyIDs, keyLive, keySegments, keySizes, keyRequests} {
		g.plain = append(g.plain, s.keys[key])
	}
	for _, name := range g.names {
		of := keysOfGroup(s.tag, name)
		g.keys = append(g.keys, of...)
		g.plain = append(g.plain, of[keyGroup], of[keyLane+driver.Normal.Lane()])
	}
	s.mu.Lock()
	s.known = g
	s.mu.Unlock()
	return g
}

// offset returns where the keys of a group begin among those of all, as scripts count.
func (g *groups) offset(name string) (int, bool) {
	i := slices.Index(g.names, name)
	return topicKeys + i*groupKeys, i >= 0
}

// withGroup returns the keys of the topic and of one group.
func (s *shard) withGroup(name string) []string {
	return append(slices.Clone(s.keys), keysOfGroup(s.tag, name)...)
}

// checkTopic refuses a topic of which keys exist with another type.
func (d *Driver) checkTopic(ctx context.Context, t *topic) error {
	for _, s := range t.shards {
		if err := d.checkTypes(ctx, s.keys); err != nil {
			return err
		}
	}
	return nil
}

// ensure returns a topic, and creates it if it does not exist.
func (d *Driver) ensure(ctx context.Context, name string, shards int) (*topic, error) {
	return d.topics.Ensure(ctx, name, cmp.Or(shards, d.o.Shards))
}

// create makes the shards of a topic that is in the registry.
func (d *Driver) create(ctx context.Context, t *topic) error {
	for _, s := range t.shards {
		if _, err := s.join(ctx, membership{}); err != nil {
			return err
		}
	}
	return nil
}

// membership is what join asks for.
type membership struct {
	group  string // empty: the topic alone
	order  driver.Order
	fixed  bool // the order is meant
	member string
	only   bool // only if the topic has no group
}

// join creates topic and group in one shard if they do not exist.
func (s *shard) join(ctx context.Context, m membership) (*groups, error) {
	name := m.group
	if name == "" {
		name = driver.DefaultGroup // for the keys; it is not created
	}
	keys := s.withGroup(name)
	if err := s.d.checkTypes(ctx, keys[topicKeys:]); err != nil {
		return nil, err
	}
	reply, err := s.d.run(ctx, &s.d.scripts.group, keys, s.of, m.group, int(m.order), redisconn.Flag(m.fixed), m.member,
		memberLife.Milliseconds(), redisconn.Flag(m.only))
	if err != nil {
		return nil, err
	}
	switch reply.Text(0) {
	case "ok":
		return s.learn(reply.Text(1), reply.Text(2)), nil
	case "shards":
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("topic %q has %s shards, not %s", s.topic, reply.Text(1), s.of),
			"drain the topic, then delete and create it with the other number", nil)
	case "order":
		other := driver.Strict
		if reply.Text(1) == "1" {
			other = driver.Relaxed
		}
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("group %q of topic %q has %s order, not %s", m.group, s.topic, other, m.order),
			"use the same order for all members, or delete the group first", nil)
	case "full":
		return nil, driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has the most groups a topic can have", s.topic),
			"delete groups that are not used", nil)
	}
	return nil, reply.ErrShape("group")
}

// staleTries bounds how often a call is repeated because the groups changed meanwhile.
const staleTries = 10

// overAll calls a script that is given all groups, again if they have changed. It returns nil when the topic is gone.
func (s *shard) overAll(ctx context.Context, sc *script, args func(*groups) []any) (redisconn.Reply, error) {
	return s.overAllAnd(ctx, sc, nil, args)
}

// change is overAll of a script that is told which request it is, so that one that is repeated changes nothing. Keys of
// a group that is not one of them any more may follow.
func (s *shard) change(ctx context.Context, sc *script, more []string,
	args func(*groups) []any) (redisconn.Reply, error) {
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	request := r.name()
	return s.overAllAnd(ctx, sc, more, func(g *groups) []any { return append([]any{request}, args(g)...) })
}

func (s *shard) overAllAnd(ctx context.Context, sc *script, more []string,
	args func(*groups) []any) (redisconn.Reply, error) {
	for range staleTries {
		g := s.groups()
		keys := g.keys
		if more != nil {
			keys = slices.Concat(keys, more)
		}
		reply, err := s.d.run(ctx, sc, keys, append([]any{s.of, g.epoch}, args(g)...)...)
		if err != nil || reply.Text(0) != "stale" {
			return reply, err
		}
		if reply.Text(1) != s.of {
			return nil, nil
		}
		s.learn(reply.Text(2), reply.Text(3))
	}
	return nil, driver.NewError(driver.ErrNotApplied,
		fmt.Sprintf("the groups of topic %q keep changing", s.topic), "try again", nil)
}

// gone says that a topic was deleted meanwhile.
func (d *Driver) gone(t *topic) error {
	d.topics.Forget(t)
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", t.name),
		"it was deleted meanwhile", nil)
}

func (t *topic) noGroup(name string, names []string) error {
	names = slices.Clone(names)
	slices.Sort(names)
	return refusal.NoGroup(t.name, name, names)
}
