package rig

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// operatorActions are what a person may do to a log while it is used.
func operatorActions() schedule.Actions {
	return schedule.Actions{
		history.Reset: {Value: "a group", Help: "the group is set back to the oldest message that is kept, by force"},
	}
}

// trim is the name of the action that cuts a log.
const trim = "trim"

// trimActions are what else a person may do to a log that is a stream.
func trimActions() schedule.Actions {
	return schedule.Actions{
		trim: {Value: "a number of entries", Help: "the log is cut to that length, as far as its groups have settled what " +
			"goes"},
	}
}

// keep is how long settled messages are kept where a group is to be set back.
const keep = time.Hour

// reset sets a group back. What is kept comes again, and that is no violation from then on.
func (n *nemesis) reset(ctx context.Context, group string) error {
	n.log.Mark(history.KindFault, "", history.Reset)
	err := n.cast.stage.look(ctx, func(d driver.Driver) error {
		_, err := d.Reset(ctx, Topic, group, driver.ResetOptions{To: driver.Position{From: driver.FromBegin}, Force: true})
		return err
	})
	n.log.Mark(history.KindHeal, "", history.Reset)
	return err
}

// trim cuts the log. Nothing that a group has not settled may go with it, so that nothing is to be excused.
func (n *nemesis) trim(ctx context.Context, with string) error {
	entries, err := strconv.ParseInt(with, 10, 64)
	if err != nil {
		return fmt.Errorf("cannot trim to %q entries", with)
	}
	return n.cast.stage.look(ctx, func(d driver.Driver) error {
		log, ok := d.(driver.Log)
		if !ok {
			return fmt.Errorf("%s cannot be trimmed", d.Capabilities().Driver)
		}
		if err := log.Retain(ctx, Topic, driver.Retention{Entries: entries}); err != nil {
			return err
		}
		_, err := log.Trim(ctx, Topic)
		return err
	})
}
