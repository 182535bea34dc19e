package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// EnsureTopic creates a topic with this configuration.
func (e *Engine) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	return e.configure(ctx, topic, c, false)
}

// AlterTopic changes the configuration of a topic; all of it can change at any time.
func (e *Engine) AlterTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	return e.configure(ctx, topic, c, true)
}

// configure gives a topic its configuration: one that exists, to alter it, or else one that has no other yet.
func (e *Engine) configure(ctx context.Context, topic string, c driver.TopicConfig, alter bool) (err error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	now := e.now()
	t, err := e.acquire(topic, !alter, nil, now)
	if err != nil {
		return err
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	if t.fixed && t.config != c && !alter {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q is configured as %+v, not %+v", topic, t.config, c),
			"use AlterTopic to change it", nil)
	}
	t.config, t.fixed = c, true
	t.alter()
	return nil
}

// DeleteTopic removes a topic with everything in it.
func (e *Engine) DeleteTopic(ctx context.Context, topic string) error {
	if err := driver.CheckName("topic", topic); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return err
	}
	for _, g := range t.groups {
		if err := g.errConsumers("delete the topic"); err != nil {
			t.unlock(now)
			return err
		}
	}
	t.freed += int64(t.log.count + t.cold.count)
	r := t.obliterate(now)
	t.end()
	e.topics.Delete(topic)
	t.mu.Unlock()
	e.durable(ctx, r, &err)
	return err
}

func (g *group) errConsumers(what string) error {
	if len(g.members) == 0 {
		return nil
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("cannot %s: group %q of topic %q has %d consumers", what,
		g.name, g.t.name, len(g.members)),
		"stop them first", nil)
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (e *Engine) EnsureGroup(ctx context.Context, in, name string, o driver.GroupOptions) error {
	if err := driver.CheckGroup(in, name); err != nil {
		return err
	}
	if err := o.Check(e.o.Capabilities); err != nil {
		return err
	}
	return e.join(ctx, in, name, o, func(*group) {})
}

// DeleteGroup removes a group with what it has not settled.
func (e *Engine) DeleteGroup(ctx context.Context, in, name string) (err error) {
	if err := driver.CheckGroup(in, name); err != nil {
		return err
	}
	var g *group
	defer func() { g.stay(err) }()
	return e.changeWhole(ctx, in, wholeChange{
		check: func(t *topic, _ moment) (err error) {
			if g, err = t.mustGroup(name); err != nil {
				return err
			}
			if err := g.errConsumers("delete the group"); err != nil {
				return err
			}
			g.leaving = true // what is cold leaves in several steps: nobody may join half a group
			return nil
		},
		each: func(_ *topic, es []*entry, now moment) {
			for _, en := range es {
				if it := en.item(g); it != nil {
					g.cancel(it, now)
				}
			}
		},
		end: func(t *topic, _ moment) {
			t.groups = slices.DeleteFunc(t.groups, func(o *group) bool { return o == g })
		},
	})
}

// stay lets members join a group again that could not be deleted. Its topic is not locked.
func (g *group) stay(err error) {
	if err != nil && g != nil {
		g.t.mu.Lock()
		g.leaving = false
		g.t.mu.Unlock()
	}
}

// Pause stops or resumes deliveries of a topic or of one group.
func (e *Engine) Pause(ctx context.Context, topic, group string, paused bool) (err error) {
	if err := driver.CheckScope(topic, group); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return err
	}
	defer func() { e.durable(ctx, t.unlock(now), &err) }()
	t.alter()
	if group == "" {
		t.paused = paused
	} else {
		g, err := t.mustGroup(group)
		if err != nil {
			return err
		}
		g.paused = paused
	}
	for _, g := range t.groups {
		for g.awaited() && !paused {
			g.waiters.next.wake()
		}
	}
	return nil
}
