// Package driver is the seam between Ferry and the systems that hold its messages.
//
// It is for authors of drivers; a program that publishes and handles messages needs package ferry and package
// worker only. A driver stores and moves messages. Every decision (whether and when to retry, which reason a dead
// letter gets, which limit applies, how many deliveries are too many) is taken above it, once, for all drivers.
//
// The comments here are the contract, and package drivertest checks it.
//
// All methods of all interfaces may be called concurrently. A context is never nil, as everywhere in Go: without one a
// call panics in the caller's goroutine, and what it called stays usable. No method adds a retry loop of its own around
// a failed request: it says what happened ([ErrNotApplied], [ErrUnknown]) and the caller decides. Durations, not times,
// cross the seam wherever a deadline is meant: only the backend's clock decides when something is due, expired or lost.
package driver

import (
	"context"
	"time"
)

// Driver is a connection to one backend. A Driver is ready when its constructor returned it.
type Driver interface {
	// Publish stores msgs in slice order and returns one Receipt for each, in the same order. The error is nil if and
	// only if every Receipt.Err is nil; otherwise it joins them. Messages of one key keep their slice order. The first
	// publish to a topic registers it, and creates the group "default" if the topic has no group at all.
	//
	// The messages are valid (see [Message.Validate]), carry their ID, and may name different topics. They are not
	// modified, and neither they nor their bodies are retained after the call. When ctx ends before the outcome is
	// known, receipts say ErrUnknown.
	Publish(ctx context.Context, msgs []*Message, o PublishOptions) ([]Receipt, error)

	// Subscribe joins one group of one topic, and creates either if it does not exist. Drivers share connections
	// between subscriptions. Options that the backend cannot honour are refused with ErrUnsupported, never ignored.
	Subscribe(ctx context.Context, o SubscribeOptions) (Subscription, error)

	// Capabilities are measured when the driver is opened, and constant after that.
	Capabilities() Capabilities

	// KV holds small named values beside the messages. It is open for as long as the driver is.
	KV() KV

	// Close ends every subscription as Subscription.Close does, then the connections. Calls after it, and calls waiting
	// in it, return ErrClosed. Closing twice is harmless.
	Close(ctx context.Context) error

	Inspector
	Manager
	Auditor
}

// PublishOptions apply to all messages of one Publish call.
type PublishOptions struct {
	// Level is what an acknowledged publish must survive. A level the backend cannot give is refused with
	// ErrUnsupported, never lowered. Defaults to Capabilities.Durability.
	Level Durability
	// Atomic asks that all messages are stored or none. Refused with ErrUnsupported beyond Capabilities.AtomicPublish.
	Atomic bool
}

// Receipt tells what became of one published message.
type Receipt struct {
	// ID of the stored message: of the first one when this one was a Duplicate.
	ID string
	// Ref locates the stored message in the backend. Zero when nothing was stored or the backend cannot tell.
	Ref Ref
	// Duplicate says that the message was known already (by its dedup id, or an id its producer chose) and not stored
	// again.
	Duplicate bool
	// Spooled says that the message is not in the backend yet, but in a spool beside the program, which brings it there:
	// see package spool. No other driver sets it.
	Spooled bool
	// Err is nil once the message is stored. Otherwise it is one of ErrNotApplied, ErrUnknown, ErrFull, ErrTooLarge,
	// ErrUnsupported, ErrClosed, wrapped.
	Err error
}

// Order says what the followers of a failing message with the same key do.
type Order uint8

const (
	// Strict makes followers of a key wait while its head waits for a retry. The default.
	Strict Order = iota
	// Relaxed lets followers pass a message that waits for a retry or is parked. Still one run of a key at a time; a
	// retry in the middle of a run leaves the rest of it held.
	Relaxed
)

// String returns "strict" or "relaxed".
func (o Order) String() string {
	if o == Relaxed {
		return "relaxed"
	}
	return "strict"
}

// SubscribeOptions describe one member of a group.
type SubscribeOptions struct {
	Topic string
	Group string // Defaults to DefaultGroup.
	// Instance names this consumer in histories and the console. Required.
	Instance string
	// Lease is how long a delivery stays ours without Extend. At least Capabilities.MinLease.
	// Defaults to Capabilities.DefaultLease.
	Lease time.Duration
	// Order is fixed by the first member of a group; a later member that differs is refused with ErrConflict.
	Order Order
	// MaxRun is the most messages of one key that one Receive claims, as a run. While any of a run is held no further
	// message of its key is delivered to anybody, so that no claim can cross a settlement that returns the rest of
	// the run. Defaults to 1.
	MaxRun int
	// MaxInflight is the most deliveries this subscription holds at once. Defaults to 1000.
	MaxInflight int
	// Weights share the claims between the lanes, low to urgent, while several are not empty. Each is 1 to MaxWeight.
	// Defaults to 1, 4, 16, 64. Ignored when StrictPriority is set.
	Weights [4]int
	// StrictPriority always takes the highest lane that is not empty; low ones may starve.
	StrictPriority bool
	// Start is where a group that this call creates begins. The zero Position is End. Refused with ErrUnsupported
	// beyond Capabilities.History, and where TopicConfig.Keep is zero. A group that exists goes on where it is.
	Start Position
	// Revoking is called when ownership of deliveries is going away before their lease ends (a rebalance). The
	// receiver settles or releases them before ctx ends; what remains then is lost to it (ErrLeaseLost). May be nil.
	Revoking func(ctx context.Context, ds []*Delivery)
}

// DefaultGroup is the group of a topic whose users name none.
const DefaultGroup = "default"

// Defaults that drivers apply to SubscribeOptions.
const (
	DefaultMaxRun      = 1
	DefaultMaxInflight = 1000
)

// MaxWeight is the largest weight of a lane.
const MaxWeight = 10_000

// DefaultWeights share claims between the lanes low, normal, high and urgent.
var DefaultWeights = [4]int{1, 4, 16, 64}

// Subscription is one member of one group of one topic.
//
// A message that comes back because it was released, parked or its lease was lost returns to its old place. One whose
// retry is due joins the tail of its lane or key, like one that was delayed, moved or replayed; but in strict order a
// retry never leaves the head of its key. When a lease is lost, the later held messages of that key return with it,
// uncounted, in any order.
//
// A lease is lost when its holder vanishes: it crashes, or does not extend in time, or a partition is taken from it
// without a handover. Of a message's losses in a group the first counts in Delivery.Deliveries, whoever held it; a
// later one counts only if Begin had recorded the delivery and its holder never speaks again. A late Extend, Settle or
// Close with the token of a lost delivery that had begun is refused with ErrLeaseLost like any other, and takes its
// count back, once: the holder lives, so that not this message ended it. The latest 16 such tokens of a message are
// known, as durably as its counts, until it is settled, dies or is replayed. What goes back in order (Release, Close, a
// rebalance whose old owner is told) counts nothing.
type Subscription interface {
	// Receive waits until it can return at least one delivery, and returns at most max. Cancelling ctx ends the wait,
	// never a claim in progress: what such a claim took is returned by the next Receive, or released by Close. While
	// the topic or the group is paused it waits. It returns context errors bare, and ErrClosed after Close.
	//
	// Messages of one key come in order, and the caller runs them one after the other. Each delivery belongs to the
	// caller, body included: changing it changes nothing that is stored.
	Receive(ctx context.Context, max int) ([]*Delivery, error)

	// Begin records that the handlers of ds are about to start, durably before it returns, and returns one error each
	// (nil, ErrLeaseLost, ErrNotApplied, ErrUnknown). It changes neither lease nor order, and may be repeated. A holder
	// calls it for what was lost before (Deliveries of 2 and more) and starts no handler whose Begin failed; it may leave
	// it out for the rest.
	Begin(ctx context.Context, ds []*Delivery) []error

	// Settle applies each settlement as one atomic step, in slice order, and returns one error each (nil, ErrLeaseLost,
	// ErrNotApplied, ErrUnknown, ...). A delivery whose lease was lost changes nothing, neither its state nor its Emit.
	// Behind a settlement that failed for another reason none of its key is applied: ErrNotApplied. In
	// strict order, Retry and Release (with or without After) also return the later held messages of that key behind it,
	// uncounted and with the Cause they had; their tokens die in the same step. A settlement stands even when ctx is
	// cancelled meanwhile: the call still waits for the answer, as long as the driver waits for its backend (at most 30
	// s), and returns ErrUnknown for what it could not learn. The slice is not retained.
	Settle(ctx context.Context, s []Settlement) []error

	// Extend makes the leases end one full lease from the backend's now, and returns one error each. The deliveries
	// are not changed: their holder reckons from the time before the call. It returns when ctx ends.
	Extend(ctx context.Context, ds []*Delivery) []error

	// Drain says that Receive is not called again; it returns ErrClosed from then on. What is held stays held until it is
	// settled or Close. What the backend reserves for this member beyond that, such as partitions, goes to the other
	// members at once; where a partition cannot go while messages of it are held (Kafka), when the last of these is
	// settled. What nobody else can take stays until Close. Draining twice is harmless.
	Drain(ctx context.Context) error

	// Close releases what is held to the head of its queue, uncounted, and leaves the group. Nothing waits for a lease.
	// It returns when ctx ends.
	Close(ctx context.Context) error
}
