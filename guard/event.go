package guard

import (
	"context"
	"sync/atomic"
	"time"
)

// EventKind says what happened.
type EventKind string

// Kinds of events.
const (
	EventAdmitted     EventKind = "admitted"
	EventLimited      EventKind = "limited"       // After
	EventBlocked      EventKind = "blocked"       // After
	EventPenalized    EventKind = "penalized"     // the key was blocked for After
	EventBusy         EventKind = "busy"          // no slot is free, or another does this very work
	EventDuplicate    EventKind = "duplicate"     // done already, acknowledged
	EventOpen         EventKind = "open"          // the breaker let nobody pass
	EventState        EventKind = "state"         // a breaker changed its State
	EventStoreFailed  EventKind = "store_failed"  // Err
	EventUnknownGroup EventKind = "unknown_group" // Err; the default rule was used
	EventLost         EventKind = "lost"          // a slot or a mark was lost while the handler ran
)

// Event is what a hook is told.
type Event struct {
	Kind  EventKind
	Layer string // "limit", "concurrency", "dedup" or "breaker"
	Name  string
	Key   string
	ID    string // of the message, where a limit was asked about one
	After time.Duration
	State State
	Err   error
}

// Hook is called as things happen, in line: keep it short. One that panics harms nothing. May be nil.
type Hook func(ctx context.Context, e Event)

func (h Hook) tell(ctx context.Context, e Event) {
	if h == nil {
		return
	}
	defer func() { _ = recover() }() // what a hook panics with is its own affair
	h(ctx, e)
}

// Stats count what a layer did since it was made.
type Stats struct {
	Admitted uint64
	// Refused were not let pass: Limited, Blocked, busy or open.
	Refused    uint64
	Limited    uint64
	Blocked    uint64
	Penalties  uint64
	Duplicates uint64
	// StoreFailures are messages that waited, or passed, because the store could not be asked.
	StoreFailures uint64
	Lost          uint64
}

type counters struct {
	admitted, refused, limited, blocked, penalties, duplicates, failures, lost atomic.Uint64
}

func (c *counters) stats() Stats {
	return Stats{
		Admitted: c.admitted.Load(), Refused: c.refused.Load(), Limited: c.limited.Load(), Blocked: c.blocked.Load(),
		Penalties: c.penalties.Load(), Duplicates: c.duplicates.Load(), StoreFailures: c.failures.Load(), Lost: c.lost.Load(),
	}
}
