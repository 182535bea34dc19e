package wecom

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

const (
	// tokenLasts is how long the token of a callback is good for.
	tokenLasts = 10 * time.Minute
	// pullTurn is how long an account is pulled before its job goes back for a moment: jobs of other accounts are settled
	// together with it.
	pullTurn = 10 * time.Second
	// slowDown is how long an account is left alone when the vendor wants fewer calls.
	slowDown = time.Minute
	// idleOnce is for how long a job of the schedule is the only one of its account, unless it is done before: while pulls
	// of an account fail, because the vendor is away or the account is wrong, one waits and not one for each minute.
	idleOnce = time.Hour
)

// pullJob asks for a pull of an account. One without an account asks for all that were not pulled lately.
type pullJob struct {
	Account string `json:"open_kfid,omitempty"`
	// Token is that of the callback.
	Token string `json:"token,omitempty"`
}

// handlePulls pulls each account of the jobs once: what a later job of it was to bring is there already. Order by key
// lets nobody else have jobs of these accounts meanwhile, on any broker.
func (p *Pipeline) handlePulls(ctx context.Context, jobs []*ferry.Msg[pullJob]) error {
	outcomes := make(worker.ItemErrors, len(jobs))
	var pulls sync.WaitGroup
	for account, mine := range byAccount(jobs) {
		pulls.Go(func() {
			err := p.handleAccount(ctx, account, tokenOf(jobs, mine), jobs[0].ClaimedAt)
			for _, i := range mine {
				outcomes[i] = err
			}
		})
	}
	pulls.Wait()
	return outcomes
}

// byAccount returns which jobs are of an account, in their order.
func byAccount(jobs []*ferry.Msg[pullJob]) map[string][]int {
	accounts := map[string][]int{}
	for i, job := range jobs {
		accounts[job.Value.Account] = append(accounts[job.Value.Account], i)
	}
	return accounts
}

// tokenOf returns the newest token of some jobs that is still good.
func tokenOf(jobs []*ferry.Msg[pullJob], mine []int) string {
	var token string
	for _, i := range mine {
		job := jobs[i]
		if job.Value.Token != "" && job.ClaimedAt.Sub(job.PublishedAt) < tokenLasts {
			token = job.Value.Token
		}
	}
	return token
}

func (p *Pipeline) handleAccount(ctx context.Context, account, token string, now time.Time) error {
	if account == "" {
		return p.pullIdle(ctx, now)
	}
	err := p.pull(ctx, account, token)
	p.stats.pulled(account, err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTurn):
		return worker.Park(0)
	case Code(err) == CodeLimited:
		return worker.Park(slowDown)
	case errors.Is(err, ferry.ErrConflict): // another pulls it too: its lease was lost, and it does not know yet
		return worker.RetryAfter(err, time.Second)
	}
	return err
}

// errTurn ends a pull that has more to do.
var errTurn = errors.New("the pull goes on later")

// pull publishes what an account has, page by page. The cursor moves after a page is stored.
func (p *Pipeline) pull(ctx context.Context, account, token string) error {
	at, err := p.Cursor(ctx, account)
	if err != nil {
		return err
	}
	for end := time.Now().Add(p.turn); ; {
		from := at.Position
		found, err := p.read(ctx, &at, &token)
		if err != nil {
			return err
		}
		if err := p.publish(ctx, account, found.Messages); err != nil {
			return err
		}
		next := found.Next
		if next == "" {
			next = at.Position
		}
		if at, err = p.advance(ctx, at, next); err != nil {
			return err
		}
		switch {
		case found.More == 0:
			return nil
		case next == from:
			return driver.NewError(ferry.ErrNotApplied, "WeCom says that "+account+" has more, and gives the same cursor again",
				"it is tried again", nil)
		case time.Now().After(end):
			return errTurn
		}
	}
}

// read returns the page at the cursor. A token that the vendor does not take is left out from then on, and a cursor
// that it does not take is given up for the beginning: what was published already is recognised.
func (p *Pipeline) read(ctx context.Context, at *Cursor, token *string) (page, error) {
	found, err := p.client.sync(ctx, at.Account, at.Position, *token)
	if Code(err) == CodeWrongMsgToken && *token != "" {
		*token = ""
		found, err = p.client.sync(ctx, at.Account, at.Position, *token)
	}
	if !cursorRefused(err) || at.Position == "" {
		return found, err
	}
	again, second := p.client.sync(ctx, at.Account, "", *token)
	if second != nil {
		return page{}, err // it was not the cursor
	}
	p.stats.rewound()
	p.log.WarnContext(ctx, "WeCom does not take the cursor of an account: it is pulled from the beginning", "account",
		at.Account, "err", err)
	at.Position = ""
	return again, nil
}

// cursorRefused reports whether the cursor may be what the vendor does not like: it documents no code for that.
func cursorRefused(err error) bool {
	switch Code(err) {
	case 0, CodeBusy, CodeLimited, CodeWrongSecret, CodeWrongToken, CodeExpiredToken, CodeWrongMsgToken, CodeWrongAccount:
		return false
	}
	return true
}

// pullIdle asks for a pull of each account that had none lately: the schedule's part. Now is the broker's time.
func (p *Pipeline) pullIdle(ctx context.Context, now time.Time) error {
	cursors, err := p.Cursors(ctx)
	if err != nil {
		return err
	}
	last := map[string]time.Time{}
	for _, account := range p.config.Accounts {
		last[account] = time.Time{}
	}
	for _, c := range cursors {
		last[c.Account] = c.Pulled
	}
	for account, pulled := range last {
		if now.Sub(pulled) < p.config.Poll/2 {
			continue
		}
		err := p.enqueue(ctx, pullJob{Account: account}, ferry.Unique("idle/"+account, idleOnce))
		var waits *ferry.UniqueError
		if err != nil && !errors.As(err, &waits) {
			return err
		}
	}
	return nil
}

// Pull asks for a pull of an account, as a callback does. It does not wait for it.
func (p *Pipeline) Pull(ctx context.Context, account string) error {
	if err := checkAccount(account); err != nil {
		return err
	}
	return p.enqueue(ctx, pullJob{Account: account})
}

func (p *Pipeline) enqueue(ctx context.Context, job pullJob, opts ...ferry.PublishOption) error {
	_, err := ferry.Publish(ctx, p.broker, p.config.PullTopic, job, append(opts, ferry.Key(job.Account))...)
	return err
}
