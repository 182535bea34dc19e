package admin

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// guardAdmin is how whoever asks changes guards: in their own name.
func (a *API) guardAdmin(ctx context.Context) (*guard.Admin, error) {
	return a.needGuards(auth.From(ctx).String())
}

type listKeys struct {
	input.Paging
	Kind string `query:"kind" enum:"blocked,overridden,whitelisted" default:"blocked"`
	Name string `query:"name" doc:"Name of one limit; every one by default" maxLength:"256"`
}

func (a *API) listKeys(ctx context.Context, in *listKeys) (api.LimitKeys, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.LimitKeys{}, err
	}
	p, err := d.List(ctx, guard.Query{Kind: guard.Kind(in.Kind), Limit: in.Name, Cursor: in.Cursor, Max: in.Limit})
	out := api.LimitKeys{Keys: make([]api.LimitKey, len(p.Keys)), Next: p.Next}
	for i, k := range p.Keys {
		out.Keys[i] = viewKey(k)
	}
	return out, err
}

func viewKey(s guard.Status) api.LimitKey {
	v := api.LimitKey{Limit: s.Limit, Key: s.Key, Rule: viewRule(s.Rule), Used: s.Used, Violations: s.Violations,
		Level:       s.Level,
		Whitelisted: s.Whitelisted, Actor: s.Actor, Reason: s.Reason}
	if o := s.Override; o != nil {
		v.Override = &api.Override{Rule: viewRule(o.Rule), Until: jsontime.At(o.Until)}
	}
	if b := s.Block; b != nil {
		v.Block = &api.Blocked{Until: jsontime.At(b.Until)}
	}
	return v
}

// viewRule returns nil for none.
func viewRule(r guard.Rule) *api.Rule {
	if r == (guard.Rule{}) {
		return nil
	}
	v := &api.Rule{Limit: r.Limit, Window: api.Duration(r.Window), Burst: r.Burst, Unlimited: r.Unlimited}
	if p := r.Penalty; p != (guard.Penalty{}) {
		v.Penalty = &api.Penalty{After: p.After, Block: api.Duration(p.Block), Factor: p.Factor, Max: api.Duration(p.Max),
			History: api.Duration(p.History)}
	}
	return v
}

func ruleOf(r api.Rule) guard.Rule {
	out := guard.Rule{Limit: r.Limit, Window: time.Duration(r.Window), Burst: r.Burst, Unlimited: r.Unlimited}
	if p := r.Penalty; p != nil {
		out.Penalty = guard.Penalty{After: p.After, Block: time.Duration(p.Block), Factor: p.Factor,
			Max: time.Duration(p.Max), History: time.Duration(p.History)}
	}
	return out
}

func (a *API) showKey(ctx context.Context, in *input.KeyPath) (api.LimitKey, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.LimitKey{}, err
	}
	s, err := d.Status(ctx, in.Limit, in.Key)
	return viewKey(s), err
}

// checkKey tells whether a message of a key would pass now, by the rule that it was last asked with.
func (a *API) checkKey(ctx context.Context, in *input.KeyPath) (api.LimitVerdict, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.LimitVerdict{}, err
	}
	v, err := d.Check(ctx, in.Limit, in.Key, nil)
	return api.LimitVerdict{Passes: v.Admitted, Blocked: v.Blocked, After: api.Duration(v.After)}, err
}

// changeKey does something to a key in the name of whoever asks.
func (a *API) changeKey(ctx context.Context, in input.KeyPath, note *auth.Action,
	change func(*guard.Admin) error) error {
	note.Detail = in.Limit + " " + in.Key
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return err
	}
	return change(d)
}

// because returns why a change is made: guards keep none without a reason.
func because(reason string) string { return cmp.Or(reason, "none given") }

type blockKey struct {
	input.KeyPath
	Body api.BlockKey
}

func (a *API) blockKey(ctx context.Context, in *blockKey, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note, func(d *guard.Admin) error {
		return d.Block(ctx, in.Limit, in.Key, time.Duration(in.Body.For), because(in.Body.Reason))
	})
}

// keyBecause names a key, and why something is done to it.
type keyBecause struct {
	input.KeyPath
	Reason string `query:"reason" maxLength:"1024" doc:"Why, for the list of changes"`
}

func (a *API) unblockKey(ctx context.Context, in *keyBecause, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note,
		func(d *guard.Admin) error { return d.Unblock(ctx, in.Limit, in.Key, because(in.Reason)) })
}

func (a *API) whitelistKey(ctx context.Context, in *keyBecause, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note,
		func(d *guard.Admin) error { return d.Whitelist(ctx, in.Limit, in.Key, because(in.Reason)) })
}

func (a *API) unwhitelistKey(ctx context.Context, in *keyBecause, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note,
		func(d *guard.Admin) error { return d.Unwhitelist(ctx, in.Limit, in.Key, because(in.Reason)) })
}

type overrideKey struct {
	input.KeyPath
	Body api.OverrideKey
}

func (a *API) overrideKey(ctx context.Context, in *overrideKey, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note, func(d *guard.Admin) error {
		return d.Override(ctx, in.Limit, in.Key, ruleOf(in.Body.Rule), time.Duration(in.Body.For), because(in.Body.Reason))
	})
}

func (a *API) clearOverride(ctx context.Context, in *keyBecause, note *auth.Action) error {
	return a.changeKey(ctx, in.KeyPath, note,
		func(d *guard.Admin) error { return d.ClearOverride(ctx, in.Limit, in.Key, because(in.Reason)) })
}

func (a *API) listRules(ctx context.Context, _ *struct{}) (api.LimitRules, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.LimitRules{}, err
	}
	all, err := d.Rules(ctx)
	out := api.LimitRules{Rules: make([]api.LimitRule, len(all))}
	for i, r := range all {
		out.Rules[i] = api.LimitRule{Limit: r.Limit, Group: r.Group, Rule: viewRule(r.Rule), At: jsontime.At(r.At),
			Actor: r.Actor, Reason: r.Reason}
	}
	return out, err
}

type setRule struct {
	input.RulePath
	Body api.SetRule
}

func (a *API) setRule(ctx context.Context, in *setRule, note *auth.Action) error {
	return a.changeRule(ctx, in.RulePath, note, func(d *guard.Admin) error {
		return d.SetRule(ctx, in.Limit, in.Group, ruleOf(in.Body.Rule), because(in.Body.Reason))
	})
}

// ruleBecause names a rule, and why something is done to it.
type ruleBecause struct {
	input.RulePath
	Reason string `query:"reason" maxLength:"1024" doc:"Why, for the list of changes"`
}

func (a *API) clearRule(ctx context.Context, in *ruleBecause, note *auth.Action) error {
	return a.changeRule(ctx, in.RulePath, note,
		func(d *guard.Admin) error { return d.ClearRule(ctx, in.Limit, in.Group, because(in.Reason)) })
}

// changeRule does something to the rule of a limit in the name of whoever asks.
func (a *API) changeRule(ctx context.Context, in input.RulePath, note *auth.Action,
	change func(*guard.Admin) error) error {
	note.Detail = strings.TrimSpace(in.Limit + " " + in.Group)
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return err
	}
	return change(d)
}

type listChanges struct {
	Limit int `query:"limit" default:"50" minimum:"1" maximum:"500"`
}

func (a *API) listChanges(ctx context.Context, in *listChanges) (api.LimitChanges, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.LimitChanges{}, err
	}
	all, err := d.Audit(ctx, in.Limit)
	out := api.LimitChanges{Changes: make([]api.LimitChange, len(all))}
	for i, c := range all {
		out.Changes[i] = api.LimitChange{At: jsontime.At(c.At), Actor: c.Actor, Reason: c.Reason, Action: string(c.Action),
			Limit: c.Limit, Group: c.Group, Key: c.Key,
			For: api.Duration(c.For), Rule: viewRule(c.Rule)}
	}
	return out, err
}

func (a *API) listBreakers(ctx context.Context, _ *struct{}) (api.Breakers, error) {
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return api.Breakers{}, err
	}
	all, err := d.Breakers(ctx)
	out := api.Breakers{Breakers: make([]api.Breaker, len(all))}
	for i, b := range all {
		out.Breakers[i] = api.Breaker{Name: b.Name, Instance: b.Instance, State: string(b.State), Forced: b.Forced,
			Since: jsontime.At(b.Since), Seen: jsontime.At(b.Seen),
			Requests: b.Requests, Failures: b.Failures, InARow: b.InARow, Successes: b.Successes}
	}
	return out, err
}

type forceBreaker struct {
	Name string `path:"name" maxLength:"256"`
	Body api.ForceBreaker
}

var forced = map[string]guard.State{"open": guard.StateOpen, "closed": guard.StateClosed, "auto": ""}

func (a *API) forceBreaker(ctx context.Context, in *forceBreaker, note *auth.Action) error {
	note.Detail = in.Name + " " + in.Body.State
	d, err := a.guardAdmin(ctx)
	if err != nil {
		return err
	}
	state, ok := forced[in.Body.State]
	if !ok {
		return driver.NewError(driver.ErrInvalid, "a breaker is open, closed or auto", "use one of them", nil)
	}
	return d.ForceBreaker(ctx, in.Name, state, because(in.Body.Reason))
}
