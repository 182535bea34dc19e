package driver

import (
	"fmt"
	"time"
)

// Delivery is one message, leased to one consumer.
type Delivery struct {
	*Message
	// Group is the group it was claimed for.
	Group string
	Ref   Ref
	// Attempt is 1 plus the number of failed attempts.
	Attempt int
	// Deliveries is 1 plus the lost leases that count (see [Subscription]). A claim never counts, nor does a release.
	Deliveries int
	// Cause says why this message is delivered (again).
	Cause Cause
	// ClaimedAt is the backend's time of the claim.
	ClaimedAt time.Time
	// LeaseUntil is when the lease ends by the local monotonic clock, reckoned from before the request was sent.
	LeaseUntil time.Time
	// Token fences the delivery: a random nonce and a counter (a counter alone repeats after a fail-over that lost
	// writes). Only the driver looks inside.
	Token Token
}

// Token identifies one lease of one message. Its text names it in logs and histories.
type Token interface{ String() string }

// Cause says why a delivery happened. Every delivery beyond the first has one.
type Cause uint8

// Causes of a delivery.
const (
	CauseFirst        Cause = iota // no handler has seen it
	CauseRetry                     // a handler failed
	CauseLeaseExpired              // its holder crashed, hung, or lost the backend
	CauseReleased                  // its holder gave it back
	CauseRebalance                 // ownership moved to another consumer
	CauseReplay                    // an operator moved, replayed or reset it
	CauseFailover                  // the backend lost its state of the delivery
)

var causes = [...]string{"first", "retry", "lease_expired", "released", "rebalance", "replay", "failover"}

// String returns the cause as it appears in histories and metrics.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return fmt.Sprintf("cause(%d)", uint8(c))
}

// Outcome is how a delivery ends.
type Outcome uint8

// Outcomes of a delivery.
const (
	// Ack: handled. The message is done for this group.
	Ack Outcome = iota
	// Retry: the handler failed. One attempt is counted, and the message is due again After.
	Retry
	// Dead: the handler failed for good. One attempt is counted, and the message goes to the dead letters of this
	// group, whole, with Failure.
	Dead
	// Release: not handled, nothing is counted, back to its old place. With After it is parked: due again After.
	Release
	// Drop: discarded on purpose, counted, no dead letter.
	Drop
)

var outcomes = [...]string{"ack", "retry", "dead", "release", "drop"}

// String returns the outcome as it appears in histories and metrics.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Settlement ends one delivery.
type Settlement struct {
	Delivery *Delivery
	Outcome  Outcome
	// After counts from the backend's now. For Retry and Release; less than zero means zero.
	After time.Duration
	// Unseen says that no handler saw the delivery: its Cause stays what it was. For Release.
	Unseen bool
	// Took is how long the handler ran; zero: not known. For Ack and Drop, of which it is shown while they are kept:
	// see Entry.Took.
	Took time.Duration
	// Failure is appended to the history of the message in this group. For Retry and Dead.
	Failure *Failure
	// Emit is published no later than the outcome takes effect: in the same step where Capabilities.AtomicEmit covers
	// the topics, before it otherwise. Valid messages with IDs. Their IDs derive from the parent and its group
	// (see EmitID), so that a repeat is a duplicate where it is not one step. A bound (ErrFull) never refuses an Emit.
	Emit []*Message
}

// Failure is one failed attempt.
type Failure struct {
	// At is the backend's time, set by the backend.
	At       time.Time
	Instance string // set by the backend from the subscription
	Attempt  int    // set by the backend
	Duration time.Duration
	Reason   Reason
	Error    string
	Stack    string // of a panic
}

// Ref locates a stored message inside its topic; what the numbers mean is the driver's. It is comparable, and zero
// when unknown.
type Ref struct {
	Partition int32
	Pos       uint64
	Sub       uint64
}

// String returns "partition-pos" or "partition-pos-sub", which ParseRef reads.
func (r Ref) String() string {
	if r.Sub == 0 {
		return fmt.Sprintf("%d-%d", r.Partition, r.Pos)
	}
	return fmt.Sprintf("%d-%d-%d", r.Partition, r.Pos, r.Sub)
}

// IsZero reports whether r locates nothing.
func (r Ref) IsZero() bool { return r == Ref{} }
