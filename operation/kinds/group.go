package kinds

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

// Reset makes a group start again from a position, as Driver.Reset does: one step, which can take long.
type Reset struct {
	Topic string `json:"topic"`
	Group string `json:"group"`
	// To is "begin", "end", or the ref of a message. Time is a time instead.
	To   string    `json:"to,omitempty"`
	Time time.Time `json:"time,omitzero"`
	// Force resets it also while it has consumers.
	Force bool `json:"force,omitempty"`
}

// Request returns what Queue.Submit takes.
func (a Reset) Request() operation.Request {
	return operation.Request{Kind: GroupReset, Args: a}
}

func (a Reset) position() (driver.Position, error) {
	switch {
	case a.To != "" && !a.Time.IsZero():
		return driver.Position{}, invalid("both a place and a time are given", "use To or Time")
	case !a.Time.IsZero():
		return driver.Position{From: driver.FromTime, Time: a.Time}, nil
	case a.To == "begin":
		return driver.Position{From: driver.FromBegin}, nil
	case a.To == "end":
		return driver.Position{From: driver.FromEnd}, nil
	}
	ref, err := driver.ParseRef(a.To)
	if err != nil {
		return driver.Position{}, driver.NewError(ferry.ErrInvalid, "it is not said where the group starts again",
			`set To to "begin", "end" or a ref like 0-42, or set Time`, err)
	}
	return driver.Position{From: driver.FromRef, Ref: ref}, nil
}

func (a Reset) check() error {
	_, err := a.position()
	return errors.Join(driver.CheckName("topic", a.Topic), driver.CheckName("group", a.Group), err)
}

// begun is noted before the step: to take it again would deliver again what was handled since.
type begun struct {
	Begun bool `json:"begun"`
}

var errSkipped = errors.New("ready before the position")

func (a Reset) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	to, err := a.position()
	if err != nil {
		return err
	}
	var at begun
	if _, err := t.Checkpoint(&at); err != nil {
		return err
	}
	if at.Begun {
		return driver.NewError(ferry.ErrConflict,
			"a worker was stopped while it reset the group, and it is not known whether it did",
			"see where the group is, and submit it again if needed", nil)
	}
	if !t.DryRun() {
		if err := errors.Join(t.Save(begun{true}), t.Sync(ctx)); err != nil {
			return err
		}
	}
	report, err := b.Driver().Reset(context.WithoutCancel(ctx), a.Topic, a.Group,
		driver.ResetOptions{To: to, DryRun: t.DryRun(), Force: a.Force})
	if errors.Is(err, ferry.ErrNotApplied) { // it can be tried again
		return errors.Join(err, t.Save(begun{}))
	}
	t.Did(report.Replayed)
	t.Skip(report.Skipped, errSkipped)
	return err
}
