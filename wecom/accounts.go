package wecom

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Account is what is known of an account: from the broker how far it is pulled, and of this process the rest.
type Account struct {
	Cursor
	// LastCallback is when this process last stored a callback of it; zero if it never did.
	LastCallback time.Time
	// Problem is why its last pull by this process failed, or nil.
	Problem error
}

// overduePolls is after how many missed polls an account is overdue: the vendor's limits cost some.
const overduePolls = 5

// Overdue returns the accounts that nobody pulled for five times Config.Poll: no process runs a pipeline, or their
// pulls fail everywhere. Of one that was never pulled Pulled is zero.
func (p *Pipeline) Overdue(ctx context.Context) ([]Cursor, error) {
	all, err := p.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var overdue []Cursor
	for _, a := range all {
		if time.Since(a.Pulled) > overduePolls*p.config.Poll {
			overdue = append(overdue, a.Cursor)
		}
	}
	return overdue, nil
}

// Accounts returns every account that is configured, was pulled or has called back, in order of their names.
func (p *Pipeline) Accounts(ctx context.Context) ([]Account, error) {
	cursors, err := p.Cursors(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]Account{}
	for _, account := range slices.Concat(p.config.Accounts, p.stats.accounts()) {
		all[account] = Account{Cursor: Cursor{Account: account}}
	}
	for _, c := range cursors {
		all[c.Account] = Account{Cursor: c}
	}
	sorted := make([]Account, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a := all[name]
		a.LastCallback, a.Problem = p.stats.of(name)
		sorted = append(sorted, a)
	}
	return sorted, nil
}
