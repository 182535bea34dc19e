package driver

import (
	"context"
	"time"
)

// Manager changes topics, groups and single messages, by hand or by tools. Each change is durable when it returns.
type Manager interface {
	// EnsureTopic creates a topic with this configuration. A topic that exists with another one is ErrConflict, and
	// the text shows the difference; one that exists only because something was published takes it on.
	EnsureTopic(ctx context.Context, topic string, c TopicConfig) error
	// AlterTopic changes the configuration. ErrUnsupported for what cannot change while there are messages.
	AlterTopic(ctx context.Context, topic string, c TopicConfig) error
	// DeleteTopic removes a topic with all its messages, groups and dead letters. ErrConflict while it has consumers.
	DeleteTopic(ctx context.Context, topic string) error

	// EnsureGroup creates a group. One that exists with another order is ErrConflict. A Start before the end is
	// ErrUnsupported beyond Capabilities.History, and where TopicConfig.Keep is zero (a topic that does not exist
	// included).
	EnsureGroup(ctx context.Context, topic, group string, o GroupOptions) error
	// DeleteGroup removes a group with what it has not settled. ErrConflict while it has consumers.
	DeleteGroup(ctx context.Context, topic, group string) error

	// Pause stops deliveries of a topic, or of one group of it; publishing and settling go on. Durable until lifted.
	Pause(ctx context.Context, topic, group string, paused bool) error
	// Purge removes what is ready, waiting or delayed as of its start, and returns how many entries. With a group, only
	// that group's. Never what is in flight, dead or held, nor what is published later.
	Purge(ctx context.Context, topic, group string) (int, error)

	// Delete removes single messages, one error each: ErrNotFound, or ErrConflict for one in flight. With a group it is
	// removed for that group only. What is done and kept is removed, too; it is ErrNotFound without
	// Capabilities.PhysicalDelete.
	Delete(ctx context.Context, ts []Target) []error
	// Move makes messages due, one error each: a dead letter is replayed (attempts and deliveries start over, Rounds
	// grows, a TTL that has passed is lifted), one that waits or is delayed or held is due After from now, an invalid one
	// is published as Edit. ErrConflict for one that is in flight or ready, ErrInvalid for one that belongs to groups
	// where Target names none. One atomic step each. Its Cause is CauseReplay; of what was delayed or held, and no handler
	// has seen, it may be CauseFirst. It blocks no key before it is due.
	Move(ctx context.Context, ms []Move) []error
	// Reset makes a group start again from a position: what is kept behind it is delivered again, what is ready before it
	// is skipped. Refused with ErrConflict while the group has consumers, unless forced.
	Reset(ctx context.Context, topic, group string, o ResetOptions) (ResetReport, error)
}

// TopicConfig lives in the backend. Zero values: no bound, nothing kept, expired messages are discarded.
type TopicConfig struct {
	// MaxMessages and MaxBytes bound what is not settled; beyond it publishing answers ErrFull.
	MaxMessages int64
	MaxBytes    int64
	// Keep holds settled messages this long, for Reset and search.
	Keep time.Duration
	// KeepMost bounds how many settled messages Keep holds: the oldest go first. ErrUnsupported where a backend has no
	// such bound. Zero: no bound.
	KeepMost int64
	// ExpiredDead sends expired messages to the dead letters (reason "expired") instead of discarding them.
	ExpiredDead bool
	// Partitions or shards, where the backend has them. Zero: its default.
	Partitions int
}

// GroupOptions describe a new group.
type GroupOptions struct {
	Order Order
	Start Position
}

// Position is a place in the history of a topic: what TopicConfig.Keep holds and what is not settled. A topic without
// Keep has none, even while some messages are not settled, so that a new group cannot begin there: it means the same on
// every backend.
type Position struct {
	From PositionKind
	Time time.Time // FromTime
	Ref  Ref       // FromRef
}

// PositionKind says how a Position is meant.
type PositionKind uint8

// Kinds of Position.
const (
	FromEnd   PositionKind = iota // what becomes ready from now on
	FromBegin                     // the oldest that is kept
	FromTime                      // the first that became ready in the millisecond of Time or later
	FromRef                       // the message with this Ref
)

// Move makes one message due.
type Move struct {
	Target
	After time.Duration
	// Edit replaces body, content type, headers, key, priority and retry overrides. Nil keeps them. The ID stays.
	Edit *Message
	// To is another group of the topic that gets a dead letter of Group instead: there it is received, here it is
	// cancelled. ErrConflict for what is not dead, and when that group has not settled the message, or has deleted it and
	// not come past it yet. Empty: Group itself.
	To string
}

// ResetOptions say where to, and how.
type ResetOptions struct {
	To     Position
	DryRun bool
	Force  bool
}

// ResetReport tells what a reset did, or would do.
type ResetReport struct {
	Replayed int // delivered again
	Skipped  int // no longer delivered
}
