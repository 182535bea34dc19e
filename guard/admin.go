package guard

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// Admin is how people look at guards and change them. Changes hold at once in every process that shares the store, and
// are kept in its audit list with who made them and why.
type Admin struct {
	store Store
	actor string
}

// NewAdmin returns an Admin that acts in somebody's name.
func NewAdmin(s Store, actor string) (*Admin, error) {
	if s == nil || actor == "" {
		return nil, driver.NewError(driver.ErrInvalid, "an admin needs a store and a name",
			"say who acts: the audit list keeps it", nil)
	}
	return &Admin{store: s, actor: actor}, nil
}

func (a *Admin) change(ctx context.Context, c Change) error {
	c.Actor = a.actor
	if err := c.Validate(); err != nil {
		return err
	}
	return a.store.Change(ctx, c)
}

func (a *Admin) changeKey(ctx context.Context, c Change) error {
	if err := driver.CheckName("limit", c.Limit); err != nil {
		return err
	}
	c.Key = bounded(c.Key)
	return a.change(ctx, c)
}

// Block keeps a key out for some time, or with zero for good.
func (a *Admin) Block(ctx context.Context, limit, key string, d time.Duration, reason string) error {
	return a.changeKey(ctx, Change{Action: ActionBlock, Limit: limit, Key: key, For: d, Reason: reason})
}

// Unblock lets a key in again, and forgets its violations and earlier blocks.
func (a *Admin) Unblock(ctx context.Context, limit, key, reason string) error {
	return a.changeKey(ctx, Change{Action: ActionUnblock, Limit: limit, Key: key, Reason: reason})
}

// Override gives a key a rule of its own for some time.
func (a *Admin) Override(ctx context.Context, limit, key string, r Rule, d time.Duration, reason string) error {
	resolved, err := r.Resolve()
	if err != nil {
		return err
	}
	return a.changeKey(ctx, Change{Action: ActionOverride, Limit: limit, Key: key, Rule: resolved, For: d, Reason: reason})
}

// ClearOverride ends an override before its time.
func (a *Admin) ClearOverride(ctx context.Context, limit, key, reason string) error {
	return a.changeKey(ctx, Change{Action: ActionClear, Limit: limit, Key: key, Reason: reason})
}

// Whitelist lets a key pass always. It ends a block; a later block ends it.
func (a *Admin) Whitelist(ctx context.Context, limit, key, reason string) error {
	return a.changeKey(ctx, Change{Action: ActionWhitelist, Limit: limit, Key: key, Reason: reason})
}

// Unwhitelist makes the rules hold for a key again.
func (a *Admin) Unwhitelist(ctx context.Context, limit, key, reason string) error {
	return a.changeKey(ctx, Change{Action: ActionUnwhitelist, Limit: limit, Key: key, Reason: reason})
}

// SetRule gives a limit, or one of its groups, another rule for good, in every process that shares the store: it holds
// for the next message, whatever rule the programs give. It is set whole: one without a Penalty has none.
func (a *Admin) SetRule(ctx context.Context, limit, group string, r Rule, reason string) error {
	resolved, err := r.Resolve()
	if err != nil {
		return err
	}
	return a.changeRule(ctx, Change{Action: ActionSetRule, Limit: limit, Group: group, Rule: resolved, Reason: reason})
}

// ClearRule makes the rule hold again that each program gives. One that was not set is cleared, too.
func (a *Admin) ClearRule(ctx context.Context, limit, group, reason string) error {
	return a.changeRule(ctx, Change{Action: ActionClearRule, Limit: limit, Group: group, Reason: reason})
}

func (a *Admin) changeRule(ctx context.Context, c Change) error {
	if err := driver.CheckName("limit", c.Limit); err != nil {
		return err
	}
	if bounded(c.Group) != c.Group {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the group %.40q cannot be one", c.Group),
			"use a name of Limit.Groups, or none", nil)
	}
	return a.change(ctx, c)
}

// Rules returns the rules that were set and not cleared, by limit and group.
func (a *Admin) Rules(ctx context.Context) ([]SharedRule, error) { return a.store.Rules(ctx) }

// Status tells everything about one key.
func (a *Admin) Status(ctx context.Context, limit, key string) (Status, error) {
	if err := driver.CheckName("limit", limit); err != nil {
		return Status{}, err
	}
	return a.store.Status(ctx, limit, bounded(key))
}

// List returns a page of the keys that are blocked, overridden or whitelisted.
func (a *Admin) List(ctx context.Context, q Query) (Page, error) {
	switch q.Kind {
	case KindBlocked, KindOverridden, KindWhitelisted:
		return a.store.List(ctx, q)
	}
	return Page{}, driver.NewError(driver.ErrInvalid, fmt.Sprintf("there is no list of %.40q keys", q.Kind),
		"use blocked, overridden or whitelisted", nil)
}

// Check tells whether a message of a key would pass now, by the rule given, or with none by the one that was last asked
// with. It counts nothing.
func (a *Admin) Check(ctx context.Context, limit, key string, r *Rule) (Verdict, error) {
	s, err := a.Status(ctx, limit, key)
	if err != nil {
		return Verdict{}, err
	}
	if r == nil {
		r = &s.Rule
		if s.Rule == (Rule{}) {
			r = &unlimited // never asked with any; blocks and overrides hold nevertheless
		}
	}
	rule, err := r.Resolve()
	if err != nil {
		return Verdict{}, err
	}
	return a.store.Take(ctx, store.Take{Items: []store.Item{{Limit: limit, Key: bounded(key), Rule: &rule}}, Peek: true})
}

// Audit returns the newest changes, newest first; the store keeps 1,000.
func (a *Admin) Audit(ctx context.Context, max int) ([]Change, error) {
	if max < 1 {
		max = auditBound
	}
	return a.store.Audit(ctx, max)
}

// Breakers returns what all processes have reported within the last hour.
func (a *Admin) Breakers(ctx context.Context) ([]BreakerStatus, error) { return a.store.Reports(ctx) }

// ForceBreaker makes a breaker open or closed in all processes that have the store, or with "" leaves it to itself.
// They obey with the next message that comes after half a second.
func (a *Admin) ForceBreaker(ctx context.Context, name string, state State, reason string) error {
	if err := checkForced(state); err != nil {
		return err
	}
	if err := checkBreaker(name); err != nil {
		return err
	}
	action := map[State]Action{StateOpen: ActionForceOpen, StateClosed: ActionForceClosed, "": ActionReleaseForce}[state]
	return a.change(ctx, Change{Action: action, Key: name, Reason: reason})
}

// checkBreaker says what is wrong with the name of a breaker: NAME, or NAME/KEY of one that has a circuit for each key.
func checkBreaker(name string) error {
	own, key, _ := strings.Cut(name, "/")
	if err := driver.CheckName("breaker", own); err != nil {
		return err
	}
	if bounded(key) != key {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("the key %.40q of breaker %s cannot be one", key, own),
			"use a name that Breakers lists", nil)
	}
	return nil
}

func checkForced(state State) error {
	if state != StateOpen && state != StateClosed && state != "" {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a breaker cannot be forced to be %.40q", state),
			"use open or closed", nil)
	}
	return nil
}

var errManyBreakers = driver.NewError(driver.ErrFull, "there are too many breakers", "raise MaxBreakers", nil)
