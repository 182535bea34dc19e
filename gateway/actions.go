package gateway

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// record notes who managed something, or tried to, as the admin API does. What Ferry does with topics of its own is
// nobody's action. That the note failed is logged: what was done is done.
func (g *Gateway) record(ctx context.Context, action auth.Action, err error) {
	if g.o.Actions == nil || driver.Reserved(action.Topic) {
		return
	}
	if err != nil {
		p := problemOf(ctx, err)
		if action.Outcome, action.Detail = auth.Failed, p.Detail; errors.Is(err, driver.ErrRefused) {
			action.Outcome = auth.Denied
		}
	}
	if err := g.o.Actions.Record(context.WithoutCancel(ctx), action); err != nil {
		g.o.Logger.ErrorContext(ctx, "ferry: an action could not be recorded", "what", action.What, "topic", action.Topic,
			"error", err)
	}
}

// recordEach notes what was done with several messages, once for each topic and group.
func (g *Gateway) recordEach(ctx context.Context, what string, targets []driver.Target, errs []error) {
	type place struct{ topic, group string }
	var order []place
	counts := map[place]int64{}
	for i, t := range targets {
		if i < len(errs) && errs[i] != nil {
			continue
		}
		at := place{t.Topic, t.Group}
		if counts[at]++; counts[at] == 1 {
			order = append(order, at)
		}
	}
	for _, at := range order {
		g.record(ctx, auth.Action{What: what, Topic: at.topic, Group: at.group, Count: counts[at]}, nil)
	}
}
