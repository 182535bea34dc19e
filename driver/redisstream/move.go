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
	errs := make([]error, len(ts))
	for i, target := range ts {
		if errs[i] = target.Check(); errs[i] == nil {
			errs[i] = d.change(ctx, target, &d.scripts.del, target.Death)
		}
	}
	return errs
}

// Move makes messages due.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	for i := range ms {
		errs[i] = d.move(ctx, ms[i])
	}
	return errs
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
	for _, p := range t.partsOf(target) {
		reply, err := p.run(ctx, s, append([]any{target.Group, placeText(target)}, args...)...)
		if err != nil {
			return err
		}
		if known, err := redisshell.Verdict(target, reply.Text(0)); known {
			return err
		}
		switch reply.Text(0) {
		case "stale":
			d.topics.Forget(t)
			return errNoTopic(t.name)
		case "other":
			return driver.NewError(driver.ErrNotFound,
				fmt.Sprintf("topic %q has no such group to move a dead letter to", t.name),
				"see its groups with 'ferry group ls'", nil)
		}
	}
	return redisshell.NoMessage(target)
}
