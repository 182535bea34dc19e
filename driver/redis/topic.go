package redis

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
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

func newTopic(d *Driver, name string, shards int) *topic {
	t := &topic{name: name}
	for i := range shards {
		tag := tagOf(d.o.Prefix, name, i)
		s := &shard{d: d, topic: name, index: i, of: strconv.Itoa(shards), tag: tag, keys: keysOfTopic(tag)}
		s.known = &groups{keys: s.keys}
		t.shards = append(t.shards, s)
	}
	return t
}

// shardFor returns where a message belongs: by its key, or by what makes it known again. One that has nothing of that
// goes where the caller's turn is.
func (t *topic) shardFor(m *driver.Message, turn uint64) *shard {
	n := uint64(len(t.shards))
	by := m.Key
	switch {
	case n == 1:
		return t.shards[0]
	case by != "":
	case m.DedupID != "":
		by = m.DedupID
	case m.OwnID:
		by = m.ID
	default:
		return t.shards[turn%n]
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(by))
	return t.shards[h.Sum64()%n]
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

// lookup returns a topic that exists, or nil.
func (d *Driver) lookup(ctx context.Context, name string) (*topic, error) {
	if err := d.shell.Refuse(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	t := d.topics[name]
	d.mu.Unlock()
	if t != nil {
		return t, nil
	}
	if err := driver.CheckName("topic", name); err != nil {
		return nil, nil // cannot exist
	}
	shards, err := d.client.HGet(ctx, registryKey(d.o.Prefix), name).Int()
	if isNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	if shards < 1 || shards > maxShards {
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("the registry says that topic %q has %d shards", name, shards),
			"something else wrote it; look at the key "+registryKey(d.o.Prefix), nil)
	}
	t = newTopic(d, name, shards)
	for _, s := range t.shards {
		if err := d.checkTypes(ctx, s.keys, topicKeyTypes[:]); err != nil {
			return nil, err
		}
	}
	return d.keepTopic(t), nil
}

// keepTopic notes a topic, unless another call was faster.
func (d *Driver) keepTopic(t *topic) *topic {
	d.mu.Lock()
	if first := d.topics[t.name]; first != nil {
		t = first
	} else {
		d.topics[t.name] = t
	}
	d.mu.Unlock()
	d.wake.listen(t)
	return t
}

// forgetTopic drops what is known of a topic that turned out to be gone or different.
func (d *Driver) forgetTopic(t *topic) {
	d.mu.Lock()
	if d.topics[t.name] == t {
		delete(d.topics, t.name)
	}
	d.mu.Unlock()
}

// existing is like lookup, but ErrNotFound when there is none.
func (d *Driver) existing(ctx context.Context, name string) (*topic, error) {
	t, err := d.lookup(ctx, name)
	if err != nil || t != nil {
		return t, err
	}
	names, _ := d.topicNames(ctx)
	names = slices.DeleteFunc(names, driver.Reserved)
	return nil, driver.NoTopic(name, names)
}

// ensure returns a topic and creates it if it does not exist: first in the registry, then in each shard.
func (d *Driver) ensure(ctx context.Context, name string, shards int) (*topic, error) {
	t, err := d.lookup(ctx, name)
	if err != nil || t != nil {
		return t, err
	}
	if err := driver.CheckName("topic", name); err != nil {
		return nil, err
	}
	if shards == 0 {
		shards = d.o.Shards
	}
	return d.create(ctx, name, shards)
}

// create registers a topic, or finds out that it is registered already, and makes sure that its shards exist.
func (d *Driver) create(ctx context.Context, name string, shards int) (*topic, error) {
	if err := d.client.HSetNX(ctx, registryKey(d.o.Prefix), name, shards).Err(); err != nil {
		return nil, redisconn.Classify(err)
	}
	t, err := d.lookup(ctx, name)
	if err != nil || t == nil {
		return nil, err
	}
	for _, s := range t.shards {
		if _, err := s.join(ctx, membership{}); err != nil {
			return nil, err
		}
	}
	return t, nil
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
	if err := s.d.checkTypes(ctx, keys[topicKeys:], groupKeyTypes[:]); err != nil {
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
	for range staleTries {
		g := s.groups()
		reply, err := s.d.run(ctx, sc, g.keys, append([]any{s.of, g.epoch}, args(g)...)...)
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
	d.forgetTopic(t)
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", t.name),
		"it was deleted meanwhile", nil)
}

func (t *topic) noGroup(name string, names []string) error {
	names = slices.Clone(names)
	slices.Sort(names)
	return refusal.NoGroup(t.name, name, names)
}
