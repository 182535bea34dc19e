// Package store is what a guard remembers with, for authors of stores: the interface that guard.NewMemory,
// guard.OpenDir and package guard/redis implement, and what is said through it. Package guardtest checks an
// implementation.
//
// A program that uses guards needs package guard only, which has names for what people see of a store: rules, statuses,
// changes.
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Store remembers what guards decide on. Every method is one atomic step, may be called concurrently, and adds no
// waiting of its own. An error says that the store could not be asked; whether anything changed is then unknown, and
// asking again is safe.
//
// Time is the store's own: that of this process, or of the Redis server.
type Store interface {
	Limits
	Slots
	Marks
	Desk
	// Close ends the store. What it keeps durably stays.
	Close(ctx context.Context) error
}

// Limits count what keys do.
type Limits interface {
	// Take asks whether a message may pass all its items. If so each counts it; otherwise none does, and those that
	// refused it count a violation, once for each message. One that passes at its first Take, unpaced, ends the row.
	Take(ctx context.Context, t Take) (Verdict, error)
	// Return gives back what an admitted Take counted: the message was not handled after all.
	Return(ctx context.Context, t Take, ticket uint64) error
}

// Take is the request of one message.
type Take struct {
	// ID is that of the message: it is one violation at most, however often it is refused. Empty: each Take is another.
	ID string
	// Age is how long ago the message was published: by that, messages that wait are judged. Zero: right now.
	Age time.Duration
	// Items are the limits it must pass.
	Items []Item
	// Peek asks only: nothing is counted.
	Peek bool
}

// Item is one key of one limit, with the rule that holds for it unless the store has another: an override of the key,
// or a shared rule of that name.
type Item struct {
	Limit, Key string
	Rule       *Rule // resolved
	// RuleName is what RuleName returns. Empty: no shared rule holds in place of Rule.
	RuleName string
	// Paced says that the message waited for others of its key: it passes no sooner than Rule.Step after the last one that
	// did; a token bucket paces by itself. Its refusal is a violation only if it was published too fast: see Rule.TooFast.
	Paced bool
}

// RuleName names the rule of a limit, or with a group that of the group. Names of limits contain no colon.
func RuleName(limit, group string) string {
	if group == "" {
		return limit
	}
	return limit + ":" + group
}

// Forever is how long a block without an end lasts.
const Forever time.Duration = 1<<63 - 1

// Verdict is the answer to a Take.
type Verdict struct {
	Admitted bool
	// Ticket names what was counted, for Return.
	Ticket uint64
	// Item is the index of the item that refuses for the longest time.
	Item int
	// Blocked says that its key is blocked, not merely over its limit.
	Blocked bool
	// After is when it is worth asking again.
	After time.Duration
	// Violations of that key in a row, this one included.
	Violations int
	// Step is how long it takes on average until one more may pass, by the rule that refuses.
	Step time.Duration
	// Penalty is how long the key is blocked because of this very message, or zero.
	Penalty time.Duration
}

// Slots bound how much is done at once.
type Slots interface {
	// Acquire takes one of r.Max slots of a key, or renews the one that r.Token names. A renewal of a slot that was lost
	// takes one again if there is one.
	Acquire(ctx context.Context, r SlotRequest) (Slot, error)
	// Release frees a slot. One that is not held any more is left to whoever has it.
	Release(ctx context.Context, r SlotRequest) error
}

// SlotRequest names a slot.
type SlotRequest struct {
	Limit, Key string
	Max        int
	Lease      time.Duration
	Token      uint64 // zero: a new one
}

// Slot is the answer to Acquire.
type Slot struct {
	Held  bool
	Token uint64
	// Leased says that the slot is lost unless it is renewed within the lease. In one process slots end with it.
	Leased bool
	// After is when the next lease ends, if nobody renews it. Zero when unknown.
	After time.Duration
}

// Marks remember what was done.
type Marks interface {
	// Begin says whether the work of an id was done, is being done by another, or is ours now for the lease. With
	// r.Token it renews.
	Begin(ctx context.Context, r MarkRequest) (Mark, error)
	// Complete marks the work as done for r.Window.
	Complete(ctx context.Context, r MarkRequest) error
	// Abort gives it up, if it is still ours.
	Abort(ctx context.Context, r MarkRequest) error
}

// MarkRequest names the work of one id.
type MarkRequest struct {
	Name, ID      string
	Token         uint64
	Lease, Window time.Duration

	digest   Digest
	digested bool
}

// Digest stands for a name and an id: half of a SHA-256, so that no two are alike, whoever chooses the ids.
type Digest [16]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Digest is that of the name and the id, which do not change after it was asked for: it is made once.
func (r *MarkRequest) Digest() Digest {
	if !r.digested {
		r.DigestOf(r.ID)
	}
	return r.digest
}

// DigestOf sets the digest to that of an id in pieces, for a store in this process, which asks for nothing else: the id
// need not be put together.
func (r *MarkRequest) DigestOf(id ...string) {
	var room [320]byte
	text := append(room[:0], r.Name...)
	text = append(text, 0)
	for _, piece := range id {
		text = append(text, piece...)
	}
	sum := sha256.Sum256(text)
	r.digest, r.digested = Digest(sum[:len(r.digest)]), true
}

// Mark is the answer to Begin: done, ours (with a token), or neither: another is at it.
type Mark struct {
	Done, Ours bool
	Token      uint64
	Leased     bool          // must be renewed, as a Slot
	After      time.Duration // when the other's lease ends
}

// Desk is what operators, and breakers, do with a store.
type Desk interface {
	// Change applies one change and notes it in the audit list, in one step.
	Change(ctx context.Context, c Change) error
	// Status tells everything about one key.
	Status(ctx context.Context, limit, key string) (Status, error)
	// List returns keys of one kind, in no particular order.
	List(ctx context.Context, q Query) (Page, error)
	// Rules returns the rules that operators have set, at most MaxSharedRules, by limit and group.
	Rules(ctx context.Context) ([]SharedRule, error)
	// Audit returns the newest changes, newest first.
	Audit(ctx context.Context, max int) ([]Change, error)
	// Report stores the breakers of one process for others to see, and returns the states that are forced.
	Report(ctx context.Context, instance string, breakers []BreakerStatus) ([]Forced, error)
	// Reports returns what every process has reported lately, and what is forced without a report, its Instance empty.
	Reports(ctx context.Context) ([]BreakerStatus, error)
}
