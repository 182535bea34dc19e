package kafka

import (
	"context"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// request is one of the messages that a call moves or deletes.
type request struct {
	driver.Target
	move *driver.Move // nil: it is deleted
	err  *error
}

// to is the group that a dead letter goes to, if that is another one.
func (q request) to() string {
	if q.move == nil {
		return ""
	}
	return q.move.To
}

// changer moves and deletes messages, whatever state they are in.
type changer struct{ *Driver }

// change does what requests ask for: dead letters many at once, the others one after the other.
func (d changer) change(ctx context.Context, all []request) {
	for _, q := range d.letters.changeLetters(ctx, all) {
		*q.err = d.changeOne(ctx, q)
	}
}

func (d changer) changeOne(ctx context.Context, q request) error {
	t, err := d.registry.Existing(ctx, q.Topic)
	if err != nil {
		return err
	}
	x, err := d.delays.Find(ctx, q.Target)
	switch {
	case err != nil:
		return err
	case x != nil && q.move != nil:
		return d.moveDelayed(ctx, t, q.move, x)
	case x != nil:
		return d.delays.Change(ctx, x, delay.EveryStamp)
	}
	es, err := d.getDue(ctx, t, q.Target)
	if err == nil {
		err = d.mayChange(t, q, es)
	}
	if err != nil {
		return err
	}
	for _, e := range es {
		if err = cluster.Joined(err, d.changeEntry(ctx, t, q, e)); err != nil && q.move != nil {
			break
		}
	}
	return err
}

// mayChange refuses to move what belongs to groups where none is named, a dead letter that is not the one that is
// meant, what is not dead to another group, what somebody holds, and to move what is ready.
func (d changer) mayChange(t *registry.TopicState, q request, es []driver.Entry) error {
	switch {
	case q.move != nil && q.Group == "" && es[0].State != driver.StateInvalid:
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("message %q belongs to groups, and none is named", es[0].ID),
			"name the group", nil)
	case q.Death > 0 && !meant(q.Target, es):
		return q.Outlived()
	}
	if to := q.to(); to != "" { // a dead letter would have been changed with others of its group
		if _, err := d.registry.Group(t.Name, to); err != nil {
			return err
		}
		return errNotSettledIn(es[0].ID, q.Group, to)
	}
	for _, e := range es {
		if e.State == driver.StateInflight || e.State == driver.StateReady && q.move != nil {
			return consumer.ErrBusy(e.ID, e.State)
		}
	}
	return nil
}

// meant reports whether one of the entries is the dead letter that a target asks for, and none lives.
func meant(target driver.Target, es []driver.Entry) bool {
	return len(es) > 0 && !slices.ContainsFunc(es, func(e driver.Entry) bool {
		return e.State != driver.StateDead || e.Dead.Rounds != target.Death-1
	})
}

func (d changer) changeEntry(ctx context.Context, t *registry.TopicState, q request, e driver.Entry) error {
	switch {
	case e.State == driver.StateDead:
		var err error
		q.err = &err
		d.letters.endLetters(ctx, t, []letter{{q, e, nil}})
		return err
	case e.State == driver.StateInvalid && q.move != nil:
		return d.mend(ctx, t, q.move, e)
	case e.State == driver.StateInvalid:
		return d.endInvalid(ctx, t, e.Ref)
	case e.State == driver.StateWaiting && q.move != nil:
		return d.moveWaiting(ctx, t, q.move, e)
	case q.move != nil:
		return cluster.ErrNoMessage(q.Target)
	}
	n, err := d.groups.Change(ctx, t, e.Group, consumer.Command{Op: "delete", Ref: e.Ref, ID: e.ID}, nil)
	if err == nil && n == 0 {
		err = cluster.ErrNoMessage(driver.Target{Topic: t.Name, ID: e.ID, Ref: e.Ref})
	}
	return err
}
