package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/delay"
	"github.com/ferrymq/ferry/driver/kafka/internal/publisher"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Move makes messages due, one error each.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	var all []request
	for i := range ms {
		if errs[i] = ms[i].Check(d.caps.MaxBody); errs[i] == nil {
			all = append(all, request{ms[i].Target, &ms[i], &errs[i]})
		}
	}
	changer{d}.change(ctx, all)
	return errs
}

func errNotSettledIn(id, group, to string) error {
	return driver.NewError(driver.ErrConflict,
		fmt.Sprintf("message %q is not dead in group %q, or not settled in group %q", id, group, to),
		"only dead letters go to another group, and only where that group has settled the message", nil)
}

// moveDelayed makes what is delayed or held due at another time; its old copies are void.
func (d changer) moveDelayed(ctx context.Context, t *registry.TopicState, m *driver.Move, x *delay.Delayed) error {
	if m.After <= 0 {
		return d.delays.Change(ctx, x, delay.EveryStamp, d.registry.DueNow(t, consumer.Edited(x.M, m.Edit)))
	}
	s := record.State{After: m.After, Cause: driver.CauseReplay, Ref: x.Ref, Stamp: x.S.Stamp + 1}
	w, err := d.delays.Start(ctx)
	if err != nil {
		return err
	}
	return d.delays.Change(ctx, x, s.Stamp, w.TierRecord(consumer.Edited(x.M, m.Edit), s, m.After))
}

// moveWaiting makes an item that waits for a retry, or is parked, due at another time.
func (d changer) moveWaiting(ctx context.Context, t *registry.TopicState, m *driver.Move, e driver.Entry) error {
	c := consumer.Command{Op: "move", Ref: e.Ref, ID: e.ID, After: max(0, m.After)}
	if m.Edit != nil {
		c.Edit = envelope.Append(nil, m.Edit)
	}
	n, err := d.groups.Change(ctx, t, e.Group, c, nil)
	if err == nil && n == 0 {
		err = consumer.ErrBusy(e.ID, driver.StateReady)
	}
	return err
}

// mend publishes an invalid record as its edit.
func (d changer) mend(ctx context.Context, t *registry.TopicState, m *driver.Move, e driver.Entry) error {
	if m.Edit == nil {
		return driver.NewError(driver.ErrInvalid, "an invalid message has no content to move",
			"set Move.Edit to what it should be", nil)
	}
	c := m.Edit.Clone()
	c.Topic, c.Delay, c.At = t.Name, max(0, m.After), time.Time{}
	if c.ID == "" {
		c.ID = "mended-" + e.Ref.String()
	}
	made, _, err := d.publisher.PrepareAll(ctx, []*driver.Message{c}, driver.PublishOptions{}, publisher.AnyNumber)
	if err == nil {
		err = d.endInvalid(ctx, t, e.Ref, made.Records()...)
	}
	made.Resolve(d.publisher.Dedup, err == nil) // also when nobody knows: stored twice is better than never
	return err
}
