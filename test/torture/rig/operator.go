package rig

import (
	"context"
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
