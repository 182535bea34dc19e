package redisstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// registryKey is a hash of all topics of a namespace and their numbers of partitions, in a slot of its own.
func registryKey(prefix string) string { return "{" + prefix + "}/topics" }

// partitionKey is the hash of one partition; its other keys begin with the same tag, so that a cluster keeps them
// together.
func partitionKey(prefix, topic string, n int) string {
	return "{" + prefix + "/" + topic + "/" + strconv.Itoa(n) + "}:topic"
}

// topic is what we know of a topic.
type topic = redisshell.Topic[*partition]

// partition is one stream of a topic.
type partition struct {
	d     *Driver
	t     *topic
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

func (d *Driver) newPartition(t *topic, index, partitions int) *partition {
	return &partition{d: d, t: t, index: index, of: strconv.Itoa(partitions),
		key: partitionKey(d.o.Prefix, t.Name, index)}
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
			fmt.Sprintf("the number of partitions of topic %q is being changed", p.t.Name),
			"try again; if it stays so, repeat AlterTopic", nil)
	}
	if err == nil && reply.Text(0) == "other" {
		err = driver.NewError(driver.ErrConflict,
			fmt.Sprintf("topic %q has %s partitions, not %s", p.t.Name, reply.Text(1), p.of),
			"drain the topic, then delete and create it with the other number", nil)
	}
	return err
}

// consult calls a script about a partition, or about what a group has there, and says when the topic is gone, it has no
// such group, or somebody consumes and nobody may.
func (p *partition) consult(ctx context.Context, s *script, group string, args ...any) (redisconn.Reply, error) {
	reply, err := p.run(ctx, s, append([]any{group}, args...)...)
	if err == nil {
		err = p.refused(s, group, reply)
	}
	return reply, err
}

// consultAll is consult in every partition.
func consultAll(ctx context.Context, t *topic, s *script, group string, args ...any) ([]redisconn.Reply, error) {
	replies := make([]redisconn.Reply, len(t.Parts))
	for i, p := range t.Parts {
		var err error
		if replies[i], err = p.consult(ctx, s, group, args...); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// undisturbed is what scripts refuse to do while there are consumers.
var undisturbed = map[string]string{"ungroup": "delete the group", "reset": "change the group",
	"drop": "delete the topic"}

// refused is the error of a script that did not find what it needs, or nil.
func (p *partition) refused(s *script, group string, reply redisconn.Reply) error {
	switch said := reply.Text(0); {
	case said == "stale":
		return p.d.topics.Gone(p.t)
	case said == "missing" && len(reply) > 1: // or it is a message
		return redisshell.NoGroup(p.t.Name, group, reply.Texts(1))
	case said == "members":
		return driver.NewError(driver.ErrConflict, "cannot "+undisturbed[s.Name]+": it has consumers", "stop them first", nil)
	}
	return nil
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
			fmt.Sprintf("group %q of topic %q has another order", m.group, p.t.Name),
			"use the same order for all members, or delete the group first", nil)
	}
	if reply.Text(0) == "keep" {
		return nil, m.start.CheckKept(p.t.Name, 0)
	}
	if start := reply.Text(2); start != "" { // also where whoever created the group did not come to an end
		r := rewind{group: m.group, start: start, cause: driver.CauseFirst, force: true}
		if _, err := p.d.rewind(ctx, []*partition{p}, r); err != nil {
			return nil, err
		}
	}
	return reply.Texts(1), nil
}

// joinAll creates a group in all partitions of a topic, which is created if it does not exist.
func (d *Driver) joinAll(ctx context.Context, name string, m membership) (*topic, error) {
	t, err := d.topics.Lookup(ctx, name)
	if err == nil && t == nil { // it is not made for a group that begins in a history
		err = m.start.CheckKept(name, 0)
	}
	if err != nil {
		return nil, err
	}
	return d.topics.With(ctx, name, 0, func(t *topic) error {
		return t.Each(func(p *partition) error {
			_, err := p.join(ctx, m)
			return err
		})
	})
}

// joinOne is the Join of the topics.
func (p *partition) joinOne(ctx context.Context, group string, only bool) ([]string, error) {
	return p.join(ctx, membership{group: group, only: only})
}
