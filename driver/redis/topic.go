package redis

import (
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
)

// topic is what this process knows about one.
type topic = redisshell.Topic[*shard]

// shard is one hash slot's worth of a topic.
type shard struct {
	d     *Driver
	t     *topic
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

func (d *Driver) newShard(t *topic, index, shards int) *shard {
	tag := tagOf(d.o.Prefix, t.Name, index)
	s := &shard{d: d, t: t, index: index, of: strconv.Itoa(shards), tag: tag, keys: keysOfTopic(tag)}
	s.known = &groups{keys: s.keys}
	return s
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

// withGroup returns the keys of the topic and of one group.
func (s *shard) withGroup(name string) []string {
	return append(slices.Clone(s.keys), keysOfGroup(s.tag, name)...)
}

// check refuses a shard of which keys exist with another type.
func (s *shard) check(ctx context.Context) error { return s.d.checkTypes(ctx, s.keys) }

// create makes a shard of a topic that is in the registry.
func (s *shard) create(ctx context.Context) error {
	_, err := s.join(ctx, membership{})
	return err
}

// membership is what join asks for.
type membership struct {
	group  string // empty: the topic alone
	order  driver.Order
	fixed  bool // the order is meant
	member string
	only   bool // only if the topic has no group
}

// joinAll creates a group in all shards of a topic, which is created if it does not exist.
func (d *Driver) joinAll(ctx context.Context, name string, m membership) (*topic, error) {
	return d.topics.With(ctx, name, 0, func(t *topic) error {
		return t.Each(func(s *shard) error {
			_, err := s.join(ctx, m)
			return err
		})
	})
}

// joinOne is the Join of the topics.
func (s *shard) joinOne(ctx context.Context, group string, only bool) ([]string, error) {
	return s.join(ctx, membership{group: group, only: only})
}

// join creates topic and group in one shard if they do not exist, and returns the names of all groups.
func (s *shard) join(ctx context.Context, m membership) ([]string, error) {
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
		return s.learn(reply.Text(1), reply.Text(2)).names, nil
	case "shards":
		return nil, s.otherShards(ctx, reply.Text(1))
	case "order":
		other := driver.Strict
		if reply.Text(1) == "1" {
			other = driver.Relaxed
		}
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("group %q of topic %q has %s order, not %s", m.group, s.t.Name, other, m.order),
			"use the same order for all members, or delete the group first", nil)
	case "full":
		return nil, driver.NewError(driver.ErrFull, fmt.Sprintf("topic %q has the most groups a topic can have", s.t.Name),
			"delete groups that are not used", nil)
	}
	return nil, reply.ErrShape("group")
}

// staleTries bounds how often a call is repeated because the groups changed meanwhile.
const staleTries = 10

// overAll calls a script that is given all groups, again if they have changed; keys of a group that is not one of them
// any more may follow. It returns nil when the topic is gone.
func (s *shard) overAll(ctx context.Context, sc *script, more []string, args ...any) (redisconn.Reply, error) {
	for range staleTries {
		g := s.groups()
		reply, err := s.d.run(ctx, sc, append(g.keys[:len(g.keys):len(g.keys)], more...),
			append([]any{s.of, g.epoch}, args...)...)
		if err != nil || reply.Text(0) != "stale" {
			return reply, err
		}
		if reply.Text(1) != s.of {
			return nil, nil
		}
		s.learn(reply.Text(2), reply.Text(3))
	}
	return nil, driver.NewError(driver.ErrNotApplied,
		fmt.Sprintf("the groups of topic %q keep changing", s.t.Name), "try again", nil)
}

// otherShards says that the topic has another number of shards: perhaps it was made anew.
func (s *shard) otherShards(ctx context.Context, has string) error {
	s.d.topics.Forget(s.t)
	again, err := s.d.topics.Lookup(ctx, s.t.Name)
	if err == nil && again != nil && len(again.Parts) != len(s.t.Parts) {
		return redisshell.ErrStale
	}
	return errShards(s.t, has, s.of)
}

func errShards(t *topic, has, wanted any) error {
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q has %v shards, not %v", t.Name, has, wanted),
		"drain the topic, then delete and create it with the other number", nil)
}

// consult calls a script about a shard, or about what one of its groups has there, and says when there is no such topic
// or group.
func (s *shard) consult(ctx context.Context, sc *script, group string, args ...any) (redisconn.Reply, error) {
	reply, err := s.overAll(ctx, sc, nil, append([]any{group}, args...)...)
	return s.present(group, reply, err)
}

// change is consult of a script that is told which request it is, so that one that is repeated changes nothing.
func (s *shard) change(ctx context.Context, sc *script, more []string, group string,
	args ...any) (redisconn.Reply, error) {
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	reply, err := s.overAll(ctx, sc, more, append([]any{group, r.name()}, args...)...)
	return s.present(group, reply, err)
}

// present makes an error of the answer of a script that found no such topic or group.
func (s *shard) present(group string, reply redisconn.Reply, err error) (redisconn.Reply, error) {
	switch names := s.groups().names; {
	case err != nil:
		return nil, err
	case reply == nil:
		return nil, s.d.topics.Gone(s.t)
	case reply.Text(0) == "missing" && group != "" && !slices.Contains(names, group):
		return nil, redisshell.NoGroup(s.t.Name, group, names)
	}
	return reply, nil
}
