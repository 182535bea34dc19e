package guard

import (
	"time"

	"github.com/ferrymq/ferry/guard/store"
)

// Store remembers what the layers decide on. NewMemory, OpenDir and package guard/redis return one; package guard/store
// is for who writes another.
type Store = store.Store

// What people say to a store, and see of it. The types live in package guard/store, with the interface.
type (
	// Rule says how many messages of one key are admitted in which time, and what happens to a key that keeps exceeding
	// it.
	Rule = store.Rule
	// Penalty blocks a key after some violations in a row.
	Penalty = store.Penalty
	// Verdict says whether a message may pass, and if not when it is worth asking again.
	Verdict = store.Verdict

	// Status is everything a store knows of one key.
	Status = store.Status
	// Block says until when a key is blocked.
	Block = store.Block
	// Override is a rule for one key, for some time.
	Override = store.Override
	// Query selects keys.
	Query = store.Query
	// Page is some of the keys.
	Page = store.Page
	// Kind says which keys a Query selects.
	Kind = store.Kind

	// SharedRule is a rule of a limit, or of a group of it, that an operator set.
	SharedRule = store.SharedRule

	// Change is one thing an operator did, as the audit list keeps it.
	Change = store.Change
	// Action is what a Change does.
	Action = store.Action

	// BreakerStatus is the state of one breaker in one process.
	BreakerStatus = store.BreakerStatus
	// State of a breaker.
	State = store.State
)

// Kinds of keys.
const (
	KindBlocked     = store.KindBlocked
	KindOverridden  = store.KindOverridden
	KindWhitelisted = store.KindWhitelisted
)

// Actions.
const (
	ActionBlock        = store.ActionBlock
	ActionUnblock      = store.ActionUnblock
	ActionOverride     = store.ActionOverride
	ActionClear        = store.ActionClear
	ActionWhitelist    = store.ActionWhitelist
	ActionUnwhitelist  = store.ActionUnwhitelist
	ActionSetRule      = store.ActionSetRule
	ActionClearRule    = store.ActionClearRule
	ActionForceOpen    = store.ActionForceOpen
	ActionForceClosed  = store.ActionForceClosed
	ActionReleaseForce = store.ActionReleaseForce
)

// States of a breaker.
const (
	StateClosed   = store.StateClosed
	StateOpen     = store.StateOpen
	StateHalfOpen = store.StateHalfOpen
)

// Forever is how long a block without an end lasts.
const Forever = store.Forever

// MaxLimit is the largest Limit of a Rule without a Burst: a sliding window remembers each admission.
const MaxLimit = store.MaxLimit

// ReasonPenalty is the reason of a block that the limiter imposed itself.
const ReasonPenalty = store.ReasonPenalty

const (
	day          = 24 * time.Hour
	waitsBound   = 256 // refused messages of a key that are remembered, so that none counts twice
	auditBound   = 1_000
	reportsBound = 1_000
)
