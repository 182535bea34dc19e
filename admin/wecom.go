package admin

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/wecom"
)

// listWeComAccounts tells how far each account of customer service is. It shows no secret: a pipeline gives none away.
func (a *API) listWeComAccounts(ctx context.Context, _ *struct{}) (api.WeComAccounts, error) {
	p := a.o.WeCom
	if p == nil {
		return api.WeComAccounts{}, without("the server has no customer service of WeCom", "see wecom in its configuration")
	}
	all, err := p.Accounts(ctx)
	if err != nil {
		return api.WeComAccounts{}, err
	}
	lag, err := p.Lag(ctx)
	s := p.Stats()
	out := api.WeComAccounts{Accounts: make([]api.WeComAccount, len(all)), LastCallback: jsontime.At(s.LastCallback),
		TokenUntil: jsontime.At(s.TokenUntil), Lag: api.WeComLag{Pulls: lag.Pulls, Messages: lag.Messages}}
	for i, one := range all {
		out.Accounts[i] = viewWeComAccount(one)
	}
	return out, err
}

func viewWeComAccount(one wecom.Account) api.WeComAccount {
	v := api.WeComAccount{Account: one.Account, Pulled: jsontime.At(one.Pulled),
		LastCallback: jsontime.At(one.LastCallback)}
	if !one.Pulled.IsZero() {
		v.CursorAge = api.Duration(max(0, time.Since(one.Pulled)).Round(time.Millisecond))
	}
	if one.Problem != nil {
		v.Problem = pullProblem(one.Problem)
	}
	return v
}

// pullProblem is what the vendor answered, or what failed on the way: the error itself may name addresses.
func pullProblem(err error) string {
	var answer *wecom.APIError
	if errors.As(err, &answer) {
		return answer.Error()
	}
	detail, _ := tell(err)
	return detail
}
