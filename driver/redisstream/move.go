package redisstream

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Delete removes single messages.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	return redisshell.Each(ts, func(target *driver.Target) error {
		if err := target.Check(); err != nil {
			return err
		}
		return d.change(ctx, *target, &d.scripts.del, target.Death)
	})
}

// Move makes messages due.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	return redisshell.Each(ms, func(m *driver.Move) error { return d.move(ctx, *m) })
}

func (d *Driver) move(ctx context.Context, m driver.Move) error {
	if err := m.Check(d.caps.MaxBody); err != nil {
		return err
	}
	args := []any{m.Death, m.To, redisconn.Milliseconds(m.After), "", 0}
	if m.Edit != nil {
		edited, err := d.edited(ctx, m)
		if err != nil {
			return err
		}
		fields, size := fieldsOf(edited)
		args = append([]any{m.Death, m.To, redisconn.Milliseconds(m.After), edited.ID, size}, fields...)
	}
	return d.change(ctx, m.Target, &d.scripts.move, args...)
}

// edited is the new content of a message. What an edit does not replace stays.
func (d *Driver) edited(ctx context.Context, m driver.Move) (*driver.Message, error) {
	entries, err := d.Get(ctx, m.Target)
	if err != nil {
		return nil, err
	}
	e := m.Edit.Clone()
	if old := entries[0].Message; old != nil {
		e.ID, e.OwnID, e.Topic = old.ID, old.OwnID, old.Topic
		e.Delay, e.At, e.TTL, e.DedupID, e.DedupWindow = old.Delay, old.At, old.TTL, old.DedupID, old.DedupWindow
	} else {
		e.Topic = m.Topic
	}
	return e, e.Validate(d.caps.MaxBody)
}

// change runs a script where the message is: in the partition of its Ref, or wherever its id is known.
func (d *Driver) change(ctx context.Context, target driver.Target, s *script, args ...any) error {
	t, err := d.topics.Existing(ctx, target.Topic)
	if err != nil {
		return err
	}
	for _, p := range partsOf(t, target) {
		reply, err := p.consult(ctx, s, target.Group, append([]any{placeText(target)}, args...)...)
		if err != nil {
			return err
		}
		switch said := reply.Text(0); said {
		case "missing": // it may be in another partition
		case "other":
			return driver.NewError(driver.ErrNotFound,
				fmt.Sprintf("topic %q has no such group to move a dead letter to", t.Name),
				"see its groups with 'ferry group ls'", nil)
		default:
			return redisshell.ErrUnchanged(target, said)
		}
	}
	return redisshell.NoMessage(target)
}
