package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Move makes messages due, each in one step.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	return redisshell.Each(ms, func(m *driver.Move) error { return d.move(ctx, m) })
}

func (d *Driver) move(ctx context.Context, m *driver.Move) error {
	if err := m.Check(d.caps.MaxBody); err != nil {
		return err
	}
	s, seq, err := d.target(ctx, m.Target)
	if err != nil {
		return err
	}
	content := []any{"", "", ""}
	if m.Edit != nil {
		entries, err := d.Get(ctx, m.Target)
		if err != nil {
			return err
		}
		if old := entries[0].Message; old != nil { // or it is mended
			content = edited(old, m.Edit)
		}
	}
	for range 2 {
		args := append(append([]any{seq, redisconn.Milliseconds(m.After)}, content...), m.Death, m.To)
		reply, err := s.change(ctx, &d.scripts.move, nil, m.Group, args...)
		if err != nil {
			return err
		}
		switch reply.Text(0) {
		case "invalid":
			return d.mend(ctx, s, seq, m)
		case "other":
			return redisshell.NoGroup(s.t.Name, m.To, s.groups().names)
		case "nogroup":
			if _, err := s.join(ctx, membership{group: driver.DefaultGroup, only: true}); err != nil {
				return err
			}
		default:
			return redisshell.ErrUnchanged(m.Target, reply.Text(0))
		}
	}
	return d.topics.Gone(s.t)
}

// edited tells a script what a message is replaced by: its envelope, its lane and its key. What an edit does not
// replace stays.
func edited(old, edit *driver.Message) []any {
	m := *old
	m.Key, m.Body, m.ContentType, m.Headers = edit.Key, edit.Body, edit.ContentType, edit.Headers
	m.Priority, m.MaxAttempts, m.Retry = edit.Priority, edit.MaxAttempts, edit.Retry
	m.Topic, m.PublishedAt = "", time.Time{}
	return []any{envelope.Append(nil, &m), m.Priority.Lane(), m.Key}
}

// mend publishes what an operator wrote in place of an entry that could not be decoded.
func (d *Driver) mend(ctx context.Context, s *shard, seq string, m *driver.Move) error {
	if m.Edit == nil {
		return redisshell.ErrUnchanged(m.Target, "invalid")
	}
	msg := *m.Edit
	msg.Topic, msg.Delay, msg.At = s.t.Name, m.After, time.Time{}
	if msg.ID == "" {
		msg.ID = driver.EmitID(s.t.Name+"/invalid/"+seq, s.index)
	}
	if to := s.t.For(&driver.Message{Key: msg.Key}, uint64(s.index)); to != s {
		return driver.NewError(driver.ErrUnsupported, "the key belongs to another shard than the entry",
			"leave the key, or publish it anew and delete the entry", nil)
	}
	p := d.publication([]*driver.Message{&msg}, driver.PublishOptions{})
	p.Force, p.at, p.replaces = true, s, seq
	p.run(ctx)
	if p.Receipts[0].Duplicate {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q knows message %q already", s.t.Name, msg.ID),
			"give another ID in Edit", nil)
	}
	return p.Receipts[0].Err
}
