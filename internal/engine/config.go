package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// EnsureTopic creates a topic with this configuration.
func (e *Engine) EnsureTopic(_ context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(c); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lock(topic, now)
	if err != nil {
		return err
	}
	defer t.unlock(now)
	if t.fixed && t.config != c {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q is configured as %+v, not %+v", topic, t.config, c),
			"use AlterTopic to change it", nil)
	}
	t.config, t.fixed = c, true
	return nil
}

// AlterTopic changes the configuration of a topic; all of it can change at any time.
func (e *Engine) AlterTopic(_ context.Context, topic string, c driver.TopicConfig) error {
	if err := checkConfig(c); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return err
	}
	defer t.unlock(now)
	t.config, t.fixed = c, true
	return nil
}

func checkConfig(c driver.TopicConfig) error {
	if c.MaxMessages < 0 || c.MaxBytes < 0 || c.Keep < 0 || c.Partitions < 0 {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("topic configuration %+v contains a negative value", c), "use zero for no bound", nil)
	}
	return nil
}

// DeleteTopic removes a topic with everything in it.
func (e *Engine) DeleteTopic(_ context.Context, topic string) error {
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
	t.freed += int64(t.log.count)
	t.end()
	e.topics.Delete(topic)
	t.mu.Unlock()
	return nil
}

func (g *group) errConsumers(what string) error {
	if len(g.members) == 0 {
		return nil
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("cannot %s: group %q of topic %q has %d consumers", what, g.name, g.t.name, len(g.members)),
		"stop them first", nil)
}

// EnsureGroup creates a group, and its topic if that does not exist.
func (e *Engine) EnsureGroup(_ context.Context, topic, group string, o driver.GroupOptions) error {
	if err := driver.CheckName("group", group); err != nil {
		return err
	}
	now := e.now()
	t, err := e.lock(topic, now)
	if err != nil {
		return err
	}
	defer t.unlock(now)
	_, err = t.joined(group, o.Order, o.Start, now)
	return err
}

// DeleteGroup removes a group with what it has not settled.
func (e *Engine) DeleteGroup(_ context.Context, topic, name string) error {
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return err
	}
	defer t.unlock(now)
	g, ok := t.group(name)
	if !ok {
		return t.noGroup(name)
	}
	if err := g.errConsumers("delete the group"); err != nil {
		return err
	}
	for _, en := range t.log.all() {
		if it := en.item(g); it != nil {
			g.finish(it, gone, now)
		}
	}
	t.groups = slices.DeleteFunc(t.groups, func(o *group) bool { return o == g })
	return nil
}

// Pause stops or resumes deliveries of a topic or of one group.
func (e *Engine) Pause(_ context.Context, topic, group string, paused bool) error {
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return err
	}
	defer t.unlock(now)
	if group == "" {
		t.paused = paused
	} else {
		g, ok := t.group(group)
		if !ok {
			return t.noGroup(group)
		}
		g.paused = paused
	}
	for _, g := range t.groups {
		if !paused {
			g.wakeAll()
		}
	}
	return nil
}
