package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Move makes messages due, each in one step.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	for i := range ms {
		errs[i] = d.moveOne(ctx, &ms[i])
	}
	return errs
}

func (d *Driver) moveOne(ctx context.Context, m *driver.Move) error {
	if err := m.Check(d.caps.MaxBody); err != nil {
		return err
	}
	t, s, seq, err := d.target(ctx, m.Target)
	if err != nil {
		return err
	}
	content := []any{"", "", ""}
	if m.Edit != nil {
		entries, err := d.entries(ctx, t, s, seq, m.Target)
		if err != nil {
			return err
		}
		if old := entries[0].Message; old != nil { // or it is mended
			content = edited(old, m.Edit)
		}
	}
	for range 2 {
		reply, err := s.change(ctx, &d.scripts.move, nil, func(g *groups) []any {
			args := append([]any{seq, offsetText(g, m.Group), redisconn.Milliseconds(m.After)}, content...)
			return append(args, strconv.Itoa(m.Death), offsetText(g, m.To))
		})
		if err != nil {
			return err
		}
		switch reply.Text(0) {
		case "invalid":
			return d.mend(ctx, t, s, seq, m)
		case "other":
			return t.noGroup(m.To, s.groups().names)
		case "nogroup":
			if _, err := s.join(ctx, membership{group: driver.DefaultGroup, only: true}); err != nil {
				return err
			}
		default:
			return d.verdict(t, s, m.Target, reply.Text(0))
		}
	}
	return d.gone(t)
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
func (d *Driver) mend(ctx context.Context, t *topic, s *shard, seq string, m *driver.Move) error {
	if m.Edit == nil {
		return d.verdict(t, s, m.Target, "invalid")
	}
	msg := *m.Edit
	msg.Topic, msg.Delay, msg.At = t.name, m.After, time.Time{}
	if msg.ID == "" {
		msg.ID = driver.EmitID(t.name+"/invalid/"+seq, s.index)
	}
	if to := t.shardFor(&driver.Message{Key: msg.Key}, uint64(s.index)); to != s {
		return driver.NewError(driver.ErrUnsupported, "the key belongs to another shard than the entry",
			"leave the key, or publish it anew and delete the entry", nil)
	}
	p := &publication{d: d, msgs: []*driver.Message{&msg}, rs: make([]driver.Receipt, 1), at: s,
		force: true, replaces: seq}
	p.run(ctx)
	if p.rs[0].Duplicate {
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q knows message %q already", t.name, msg.ID),
			"give another ID in Edit", nil)
	}
	return p.rs[0].Err
}
