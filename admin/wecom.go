package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/monitor"
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

// codeNotPulled is the code of an account of customer service that nobody pulls any more.
const codeNotPulled = "wecom_not_pulled"

// notPulled returns a reason for each account whose pulls have stopped, if there is customer service. What the broker
// does not answer about them, it is unreachable for.
func (a *API) notPulled(ctx context.Context) []api.HealthReason {
	if a.o.WeCom == nil {
		return nil
	}
	overdue, err := a.o.WeCom.Overdue(ctx)
	if err != nil {
		_ = a.problem(ctx, err) // which logs it
		return nil
	}
	reasons := make([]api.HealthReason, len(overdue))
	for i, c := range overdue {
		r := api.HealthReason{Status: string(monitor.Degraded), Code: codeNotPulled, Account: c.Account,
			Subject: "account " + c.Account + " of WeCom", Text: "it was never pulled"}
		if !c.Pulled.IsZero() {
			age := time.Since(c.Pulled).Round(time.Second)
			r.Age, r.Text = api.Duration(age), fmt.Sprintf("it was last pulled %v ago", age)
		}
		reasons[i] = r
	}
	return reasons
}
