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
	if _, ok, err := s.invalidEntry(ctx, seq); err != nil || ok {
		if err != nil {
			return err
		}
		return d.mend(ctx, t, s, seq, m)
	}
	var only []string
	if m.Group != "" {
		only = []string{m.Group}
	}
	v, err := s.load(ctx, []string{seq}, only)
	if err != nil {
		return err
	}
	if v == nil {
		return d.gone(t)
	}
	if len(v.g.names) == 0 {
		if _, err := s.join(ctx, membership{group: driver.DefaultGroup, only: true}); err != nil {
			return err
		}
	}
	text, edit, ok := v.moved(seq, m)
	if !ok {
		return d.verdict(t, s, m.Target, []any{v.missing(seq, m)})
	}
	r := d.requests.take()
	defer d.requests.giveBack(r)
	request := r.name()
	reply, err := s.overAll(ctx, &d.scripts.move, func(g *groups) []any {
		return []any{request, seq, offsetText(g, m.Group), redisconn.Milliseconds(m.After), text, edit, strconv.Itoa(m.Death),
			offsetText(g, m.To)}
	})
	if err != nil {
		return err
	}
	if len(reply) > 0 && reply[0] == "other" {
		return t.noGroup(m.To, s.groups().names)
	}
	return d.verdict(t, s, m.Target, reply)
}

// missing says why a message that the view does not show cannot be moved.
func (v *view) missing(seq string, m *driver.Move) string {
	if _, ok := v.bodies[seq]; ok && m.Group == "" {
		return "group"
	}
	if _, ok := v.pending[seq]; ok {
		return "pending"
	}
	return "missing"
}

// moved returns the item of a message after a move, and its envelope if it is edited.
func (v *view) moved(seq string, m *driver.Move) (text string, edit []byte, ok bool) {
	e, ok := v.entry(seq, m.Group)
	if !ok || e.Message == nil || m.Group == "" && e.Group != "" {
		return "", nil, false
	}
	msg := *e.Message
	if m.Edit != nil {
		msg.Key, msg.Body, msg.ContentType, msg.Headers = m.Edit.Key, m.Edit.Body, m.Edit.ContentType, m.Edit.Headers
		msg.Priority, msg.MaxAttempts, msg.Retry = m.Edit.Priority, m.Edit.MaxAttempts, m.Edit.Retry
		stored := msg
		stored.Topic, stored.PublishedAt = "", time.Time{}
		edit = envelope.Append(nil, &stored)
	}
	return itemText(&msg, seq), edit, true
}

// mend publishes what an operator wrote in place of an entry that could not be decoded.
func (d *Driver) mend(ctx context.Context, t *topic, s *shard, seq string, m *driver.Move) error {
	if m.Edit == nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("message %s cannot be decoded", describe(m.Target)),
			"give its content in Edit, or delete it", nil)
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
