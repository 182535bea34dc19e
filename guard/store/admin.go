package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Action is what a Change does.
type Action string

// Actions.
const (
	ActionBlock        Action = "block"
	ActionUnblock      Action = "unblock"
	ActionOverride     Action = "override"
	ActionClear        Action = "clear_override"
	ActionWhitelist    Action = "whitelist"
	ActionUnwhitelist  Action = "unwhitelist"
	ActionSetRule      Action = "set_rule"
	ActionClearRule    Action = "clear_rule"
	ActionForceOpen    Action = "breaker_open"
	ActionForceClosed  Action = "breaker_close"
	ActionReleaseForce Action = "breaker_auto"
)

// Change is one thing an operator did, as the audit list keeps it.
type Change struct {
	At     time.Time `json:"at"` // set by the store
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Action Action    `json:"action"`
	// Limit and Key say whom it concerns; for breakers Key is the name. Group is that of a rule that is set or cleared.
	Limit string `json:"limit,omitempty"`
	Group string `json:"group,omitempty"`
	Key   string `json:"key,omitempty"`
	// For is how long a block or an override holds. Zero: a block without an end.
	For time.Duration `json:"for,omitempty"`
	// Rule of an override, or the one that is set.
	Rule Rule `json:"rule,omitzero"`
}

// Validate says what is wrong with a change. Stores take changes as they are, and not all come from an Admin of this
// process.
func (c Change) Validate() error {
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case c.Actor == "":
		return bad("a change needs the name of who makes it", "say who acts: the audit list keeps it")
	case c.Reason == "":
		return bad("a change needs a reason", "say why: the audit list keeps it")
	case c.For < 0 || c.For > MaxSpan:
		return bad(fmt.Sprintf("the duration %v is out of range", c.For),
			"use a positive one, or leave it out to block for good")
	}
	switch c.Action {
	case ActionOverride, ActionSetRule:
		if c.Action == ActionOverride && c.For == 0 {
			return bad("an override has no end", "say for how long; a lasting rule belongs in a group")
		}
		return c.Rule.Validate()
	case ActionBlock, ActionUnblock, ActionClear, ActionWhitelist, ActionUnwhitelist, ActionClearRule, ActionForceOpen,
		ActionForceClosed, ActionReleaseForce:
		return nil
	}
	return bad(fmt.Sprintf("there is no change %.40q", c.Action), "use the same release of Ferry on both sides")
}

// Status is everything a store knows of one key.
type Status struct {
	Limit string `json:"limit"`
	Key   string `json:"key"`
	// Rule is the one that was last asked with, and Override the one that holds instead, if any.
	Rule     Rule      `json:"rule,omitzero"`
	Override *Override `json:"override,omitempty"`
	// Used is how many of the window are used, or how many tokens of the burst.
	Used int `json:"used"`
	// Violations in a row, and Level, the number of blocks that make the next one longer.
	Violations  int    `json:"violations"`
	Level       int    `json:"level"`
	Block       *Block `json:"block,omitempty"`
	Whitelisted bool   `json:"whitelisted"`
	// Actor and Reason are those of the last change that holds, "penalty" for a block by the limiter itself.
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Block says until when a key is blocked. A zero Until: for good.
type Block struct {
	Until time.Time `json:"until,omitzero"`
}

// Override is a rule for one key, for some time.
type Override struct {
	Rule  Rule      `json:"rule"`
	Until time.Time `json:"until"`
}

// SharedRule is a rule that an operator set for a limit, or with a Group for one of its groups. It holds in place of
// the rule that programs give.
type SharedRule struct {
	Limit  string    `json:"limit"`
	Group  string    `json:"group,omitempty"`
	Rule   Rule      `json:"rule"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

// SharedRuleOf is what a change that sets a rule makes.
func SharedRuleOf(c Change) SharedRule {
	return SharedRule{Limit: c.Limit, Group: c.Group, Rule: c.Rule, At: c.At, Actor: c.Actor, Reason: c.Reason}
}

// MaxSharedRules is how many shared rules a store keeps: each Take may look one up.
const MaxSharedRules = 1_000

// ErrManyRules is the error of a change that would set one more.
var ErrManyRules = driver.NewError(driver.ErrFull, "the guard store has too many rules of limits",
	"clear those that are not needed", nil)

// SortRules orders rules by limit, then by group.
func SortRules(all []SharedRule) {
	slices.SortFunc(all, func(a, b SharedRule) int {
		return cmp.Or(strings.Compare(a.Limit, b.Limit), strings.Compare(a.Group, b.Group))
	})
}

// ReasonPenalty is the reason of a block that the limiter imposed itself.
const ReasonPenalty = "penalty"

// Kind says which keys List returns.
type Kind string

// Kinds.
const (
	KindBlocked     Kind = "blocked"
	KindOverridden  Kind = "overridden"
	KindWhitelisted Kind = "whitelisted"
)

// Query selects keys. Limit empty means all limits.
type Query struct {
	Kind   Kind
	Limit  string
	Cursor string // of the page before
	Max    int    // Defaults to 100.
}

// Resolve fills in the defaults. Stores call it first in List.
func (q Query) Resolve() Query {
	if q.Max <= 0 {
		q.Max = 100
	}
	q.Max = min(q.Max, 1000)
	return q
}

// Page is some of the keys. Next is empty on the last one.
type Page struct {
	Keys []Status
	Next string
}

// BreakerStatus is the state of one breaker in one process.
type BreakerStatus struct {
	Name     string    `json:"name"`
	Instance string    `json:"instance"`
	State    State     `json:"state"`
	Forced   bool      `json:"forced"`
	Since    time.Time `json:"since"` // of the state
	Seen     time.Time `json:"seen"`  // when it was reported
	// Counts since the state began, or since Interval began.
	Requests  int `json:"requests"`
	Failures  int `json:"failures"`
	InARow    int `json:"failures_in_a_row"`
	Successes int `json:"successes"`
}

// Forced is a state that an operator wants a breaker to have, in every process.
type Forced struct {
	Name  string `json:"name"`
	State State  `json:"state"`
}

// State of a breaker.
type State string

// States of a breaker.
const (
	StateClosed   State = "closed"
	StateOpen     State = "open"
	StateHalfOpen State = "half_open"
)

// WithForced adds a breaker that is forced although no process has reported it yet.
func WithForced(all []BreakerStatus, f Forced) []BreakerStatus {
	if slices.ContainsFunc(all, func(b BreakerStatus) bool { return b.Name == f.Name }) {
		return all
	}
	return append(all, BreakerStatus{Name: f.Name, State: f.State, Forced: true})
}

// SortBreakers orders what processes reported by breaker, then by process.
func SortBreakers(all []BreakerStatus) {
	slices.SortFunc(all, func(a, b BreakerStatus) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Instance, b.Instance)
	})
}
