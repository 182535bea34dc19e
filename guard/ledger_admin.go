package guard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

func (l *ledger) change(now time.Time, c Change) error {
	c.At = now
	e := entry{Audit: &c}
	switch c.Action {
	case ActionForceOpen, ActionForceClosed, ActionReleaseForce:
		l.force(c)
	case ActionSetRule, ActionClearRule:
		if err := l.share(c); err != nil {
			return err
		}
	default:
		acc, err := l.account(now, id{c.Limit, c.Key})
		if err != nil {
			return err
		}
		r := l.recordOf(id{c.Limit, c.Key}, acc)
		if err := acc.amend(now, r, c); err != nil {
			return err
		}
		kept := *r
		e.Limit, e.Key, e.Record = c.Limit, c.Key, &kept
	}
	l.note(c)
	if l.keep != nil {
		l.keep(e)
	}
	return nil
}

func (l *ledger) note(c Change) {
	if len(l.audit) >= auditBound {
		l.audit = append(l.audit[:0:0], l.audit[len(l.audit)-auditBound+1:]...)
	}
	l.audit = append(l.audit, c)
}

func (l *ledger) force(c Change) {
	switch c.Action {
	case ActionForceOpen:
		l.forced[c.Key] = StateOpen
	case ActionForceClosed:
		l.forced[c.Key] = StateClosed
	case ActionReleaseForce:
		delete(l.forced, c.Key)
	}
}

// share sets the rule of a limit or a group, or clears it.
func (l *ledger) share(c Change) error {
	name := store.RuleName(c.Limit, c.Group)
	if c.Action == ActionClearRule {
		delete(l.rules, name)
		return nil
	}
	if l.rules[name] == nil && len(l.rules) >= store.MaxSharedRules {
		return store.ErrManyRules
	}
	shared := store.SharedRuleOf(c)
	l.rules[name] = &shared
	return nil
}

func (l *ledger) sharedRules() []SharedRule {
	all := make([]SharedRule, 0, len(l.rules))
	for _, r := range l.rules {
		all = append(all, *r)
	}
	store.SortRules(all)
	return all
}

// amend applies a change to one key. Of a block and a whitelisting the later one holds.
func (acc *account) amend(now time.Time, r *record, c Change) error {
	switch c.Action {
	case ActionBlock:
		r.Blocked, r.Until, r.Whitelisted = true, time.Time{}, false
		if c.For > 0 {
			r.Until = now.Add(c.For)
		}
	case ActionUnblock:
		*r = record{Override: r.Override, Whitelisted: r.Whitelisted, Paid: now}
		acc.violations, acc.waits = 0, nil
	case ActionOverride:
		r.Override = &Override{Rule: c.Rule, Until: now.Add(c.For)}
	case ActionClear:
		r.Override = nil
	case ActionWhitelist:
		*r = record{Override: r.Override, Whitelisted: true, Paid: now}
		acc.violations, acc.waits = 0, nil
	case ActionUnwhitelist:
		r.Whitelisted = false
	default:
		return errAction(c.Action)
	}
	r.Actor, r.Reason = c.Actor, c.Reason
	return nil
}

func errAction(a Action) error {
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("change %q does not exist", a),
		"use one of the actions of package guard", nil)
}

func (l *ledger) status(now time.Time, limit, key string) Status {
	s := Status{Limit: limit, Key: key}
	acc := l.accounts[id{limit, key}]
	if acc == nil {
		return s
	}
	at := now.Sub(l.epoch)
	s.Violations = acc.violations
	rule := &unlimited
	if acc.rule != nil {
		s.Rule, rule = *acc.rule, acc.rule
	}
	if r := acc.record; r != nil {
		s.Whitelisted, s.Actor, s.Reason = r.Whitelisted, r.Actor, r.Reason
		if now.Before(r.Forget) {
			s.Level = r.Level
		}
		if r.blocked(now) {
			s.Block = &Block{Until: r.Until}
		}
		if r.Override != nil && now.Before(r.Override.Until) {
			o := *r.Override
			s.Override, rule = &o, &o.Rule
		}
	}
	switch {
	case rule.Unlimited:
	case rule.Burst > 0:
		s.Used = rule.Burst - int(acc.level(at, rule))
	default:
		s.Used, _ = acc.window.after(at - rule.Window)
	}
	return s
}

// list goes through the keys in order of their names, so that a cursor is a name.
func (l *ledger) list(now time.Time, q Query) Page {
	var names []id
	for k, acc := range l.recorded {
		if (q.Limit == "" || q.Limit == k.limit) && acc.record.is(q.Kind, now) && cursorOf(k) > q.Cursor {
			names = append(names, k)
		}
	}
	slices.SortFunc(names, func(a, b id) int { return strings.Compare(cursorOf(a), cursorOf(b)) })
	var p Page
	for _, k := range names {
		if len(p.Keys) == q.Max {
			last := p.Keys[q.Max-1]
			p.Next = cursorOf(id{last.Limit, last.Key})
			break
		}
		p.Keys = append(p.Keys, l.status(now, k.limit, k.key))
	}
	return p
}

func cursorOf(k id) string { return k.limit + "\x00" + k.key }

func (r *record) is(kind Kind, now time.Time) bool {
	switch kind {
	case KindBlocked:
		return r.blocked(now)
	case KindOverridden:
		return r.Override != nil && now.Before(r.Override.Until)
	case KindWhitelisted:
		return r.Whitelisted
	}
	return false
}

func (l *ledger) newest(n int) []Change {
	n = min(n, len(l.audit))
	out := slices.Clone(l.audit[len(l.audit)-n:])
	slices.Reverse(out)
	return out
}

// reportAge is how long what a process reported of its breakers is shown.
const reportAge = time.Hour

func (l *ledger) report(now time.Time, instance string, breakers []BreakerStatus) []store.Forced {
	if len(breakers) > 0 {
		own := make([]BreakerStatus, len(breakers))
		for i, b := range breakers {
			b.Instance, b.Seen = instance, now
			own[i] = b
		}
		l.reports[instance] = own
	}
	out := make([]store.Forced, 0, len(l.forced))
	for name, state := range l.forced {
		out = append(out, store.Forced{Name: name, State: state})
	}
	return out
}

func (l *ledger) allReports(now time.Time) []BreakerStatus {
	var out []BreakerStatus
	for instance, list := range l.reports {
		if len(list) == 0 || now.Sub(list[0].Seen) > reportAge {
			delete(l.reports, instance)
			continue
		}
		out = append(out, list...)
	}
	for name, state := range l.forced {
		out = store.WithForced(out, store.Forced{Name: name, State: state})
	}
	store.SortBreakers(out)
	return out
}
