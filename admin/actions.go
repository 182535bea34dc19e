package admin

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) needActions() (*auth.Actions, error) {
	if a.o.Actions == nil {
		return nil, without("the server records no actions", "start it with ferry serve, which does")
	}
	return a.o.Actions, nil
}

// flush records denied calls that were counted, every minute and at the end.
func (a *API) flush(ctx context.Context) {
	if a.o.Actions == nil {
		return
	}
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		if err := a.o.Actions.Flush(flushing, ended); err != nil {
			a.log.WarnContext(ctx, "admin: denied calls could not be recorded", "error", err)
		}
		cancel()
	}
}

// listActions tells who did what, the newest first.
func (a *API) listActions(ctx context.Context, in *input.Paging) (api.ActionPage, error) {
	actions, err := a.needActions()
	if err != nil {
		return api.ActionPage{}, err
	}
	p, err := actions.List(ctx, auth.ActionQuery{Cursor: in.Cursor, Limit: in.Limit})
	out := api.ActionPage{Actions: make([]api.Action, len(p.Actions)), Next: p.Next}
	for i, r := range p.Actions {
		out.Actions[i] = api.Action{Sequence: r.Sequence, At: jsontime.At(r.At), Who: r.Who, What: r.What, Topic: r.Topic,
			Group: r.Group, Filter: r.Filter,
			Detail: r.Detail, Count: r.Count, Outcome: r.Outcome, RequestID: r.RequestID, Hash: r.Hash}
	}
	return out, err
}

// verifyActions walks over the chain of actions, and finds those that were changed, removed or put in between.
func (a *API) verifyActions(ctx context.Context, _ *struct{}) (api.ActionVerdict, error) {
	actions, err := a.needActions()
	if err != nil {
		return api.ActionVerdict{}, err
	}
	v, err := actions.Verify(ctx)
	return api.ActionVerdict{Checked: v.Checked, Newest: v.Newest, Head: v.Head, Problems: list(v.Problems)}, err
}
