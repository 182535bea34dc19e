package redisstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// registryKey is a hash of all topics of a namespace and their numbers of partitions, in a slot of its own.
func registryKey(prefix string) string { return "{" + prefix + "}/topics" }

// partitionKey is the hash of one partition; its other keys begin with the same tag, so that a cluster keeps them
// together.
func partitionKey(prefix, topic string, n int) string {
	return "{" + prefix + "/" + topic + "/" + strconv.Itoa(n) + "}:topic"
}

// topic is what we know of a topic.
type topic struct {
	name  string
	parts []*partition
}

// partition is one stream of a topic.
type partition struct {
	d     *Driver
	topic string
	index int
	of    string // how many partitions the topic has, as scripts check it
	key   string
}

// stream is the key of the stream.
func (p *partition) stream() string { return p.sibling("stream") }

// sibling is another key of the partition.
func (p *partition) sibling(name string) string { return strings.TrimSuffix(p.key, "topic") + name }

// keys are those that a script is called with. Scripts make the names of all others from the first. The second never
// exists: while a cluster moves the slot, the server answers TRYAGAIN to whoever names a key that is not there, and so
// nothing is written on either side.
func (p *partition) keys() []string { return []string{p.key, p.sibling("none")} }

// fence is the key that changes whenever the owner of the partition in a group does.
func (p *partition) fence(group string) string { return p.sibling("g:" + group + ":fence") }

func (d *Driver) newTopic(name string, n int) *topic {
	t := &topic{name: name}
	for i := range n {
		t.parts = append(t.parts, &partition{d: d, topic: name, index: i, of: strconv.Itoa(n),
			key: partitionKey(d.o.Prefix, name, i)})
	}
	return t
}

// Name and Parts are what the registry has of it.
func (t *topic) Name() string { return t.name }

// Parts is the number of partitions.
func (t *topic) Parts() int { return len(t.parts) }

// ensure returns a topic, and creates it if it does not exist.
func (d *Driver) ensure(ctx context.Context, name string, partitions int) (*topic, error) {
	return d.topics.Ensure(ctx, name, cmp.Or(partitions, d.o.Partitions))
}

// remake finds a topic that turned out to be stale again. One that is in the registry may lack partitions: whoever
// creates it has not come so far, or never will.
func (d *Driver) remake(ctx context.Context, t *topic) (*topic, error) {
	d.topics.Forget(t)
	again, err := d.ensure(ctx, t.name, 0)
	if err != nil {
		return nil, err
	}
	return again, d.create(ctx, again)
}

// create makes the partitions of a topic that is in the registry.
func (d *Driver) create(ctx context.Context, t *topic) error {
	for _, p := range t.parts {
		if err := p.create(ctx); err != nil {
			return err
		}
	}
	return nil
}

// create makes a partition, unless a key of ours has another type: scripts cannot roll back, so that must be found
// before.
func (p *partition) create(ctx context.Context) error {
	types := map[string]string{p.key: "hash", p.stream(): "stream"}
	keys := slices.Collect(maps.Keys(types))
	err := redisshell.CheckTypes(ctx, p.d.client, keys, func(key string) string { return types[key] })
	if err != nil {
		return err
	}
	reply, err := p.run(ctx, &p.d.scripts.create)
	if err == nil && reply.Text(0) == "closed" {
		err = driver.NewError(driver.ErrNotApplied,
			fmt.Sprintf("the number of partitions of topic %q is being changed", p.topic),
			"try again; if it stays so, repeat AlterTopic", nil)
	}
	if err == nil && reply.Text(0) == "other" {
		err = driver.NewError(driver.ErrConflict,
			fmt.Sprintf("topic %q has %s partitions, not %s", p.topic, reply.Text(1), p.of),
			"drain the topic, then delete and create it with the other number", nil)
	}
	return err
}

func errNoTopic(name string) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", name),
		"publish to it, or create it: 'ferry topic create'", nil)
}

func (t *topic) noGroup(name string, names []string) error {
	slices.Sort(names)
	return refusal.NoGroup(t.name, name, names)
}

// each runs a script in every partition, and says when the topic is gone or has no such group.
func (d *Driver) each(ctx context.Context, t *topic, s *script, group string, args ...any) ([]redisconn.Reply, error) {
	replies := make([]redisconn.Reply, len(t.parts))
	for i, p := range t.parts {
		var err error
		if replies[i], err = d.in(ctx, t, p, s, group, args...); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// in is each in one partition.
func (d *Driver) in(ctx context.Context, t *topic, p *partition, s *script, group string,
	args ...any) (redisconn.Reply, error) {
	reply, err := p.run(ctx, s, args...)
	if err == nil {
		err = d.absent(t, group, reply)
	}
	return reply, err
}

// absent is the error of a script that found no such topic or group, or nil.
func (d *Driver) absent(t *topic, group string, reply redisconn.Reply) error {
	switch reply.Text(0) {
	case "stale":
		d.topics.Forget(t)
		return errNoTopic(t.name)
	case "missing":
		return t.noGroup(group, reply.Texts(1))
	}
	return nil
}

// partFor returns the partition of a message.
func (t *topic) partFor(m *driver.Message, turn uint64) *partition {
	return t.parts[redisshell.PartFor(m, turn, len(t.parts))]
}

// membership is how a group is joined or created.
type membership struct {
	group string
	order string // "0", "1", or "" not decided
	only  bool   // only if there is no group at all
	start driver.Position
}

// join creates a group in a partition, if need be, and returns the names of all groups.
func (p *partition) join(ctx context.Context, m membership) ([]string, error) {
	reply, err := p.run(ctx, &p.d.scripts.group, m.group, m.order, redisconn.Flag(m.only), positionText(m.start))
	if err != nil {
		return nil, err
	}
	switch reply.Text(0) {
	case "stale":
		return nil, redisshell.ErrStale
	case "order":
		return nil, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("group %q of topic %q has another order", m.group, p.topic),
			"use the same order for all members, or delete the group first", nil)
	}
	if reply.Text(0) == "keep" {
		return nil, m.start.CheckKept(p.topic, 0)
	}
	if start := reply.Text(2); start != "" { // also where whoever created the group did not come to an end
		r := rewind{group: m.group, from: positionOf(start, p), cause: driver.CauseFirst, force: true}
		if _, err := p.d.rewind(ctx, &topic{name: p.topic}, []*partition{p}, r); err != nil {
			return nil, err
		}
	}
	return reply.Texts(1), nil
}

// staleTries bounds how often a call is repeated because a topic changed meanwhile.
const staleTries = 5

// joinAll creates a group in all partitions of a topic, which is created if it does not exist.
func (d *Driver) joinAll(ctx context.Context, name string, m membership) (*topic, error) {
	t, err := d.topics.Lookup(ctx, name)
	if err == nil && t == nil { // it is not made for a group that begins in a history
		err = m.start.CheckKept(name, 0)
	}
	if err != nil {
		return nil, err
	}
	for range staleTries {
		if t, err = d.ensure(ctx, name, 0); err != nil {
			return nil, err
		}
		for _, p := range t.parts {
			if _, err = p.join(ctx, m); err != nil {
				break
			}
		}
		if !errors.Is(err, redisshell.ErrStale) {
			return t, err
		}
		if _, e := d.remake(ctx, t); e != nil {
			return nil, e
		}
	}
	return nil, err
}

// prepare gives a topic without groups the default one, and every partition the groups that the first one has.
func (d *Driver) prepare(ctx context.Context, t *topic) error {
	names, err := t.parts[0].join(ctx, membership{group: driver.DefaultGroup, only: true})
	if err != nil {
		return err
	}
	for _, p := range t.parts[1:] {
		for _, name := range names {
			if _, err := p.join(ctx, membership{group: name}); err != nil {
				return err
			}
		}
	}
	return nil
}
