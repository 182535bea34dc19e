// Package history is what the processes of a torture run leave behind: one file each, one line per event, appended with
// one write so that it survives kill -9 of its writer.
package history

import (
	"encoding/json"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Kind says what happened.
type Kind string

// Kinds of the harness: what it did, and what it found at the end.
const (
	KindRun      Kind = "run"      // the first event: what the run promises to keep
	KindFault    Kind = "fault"    // a fault begins; Process is the victim, empty for all
	KindHeal     Kind = "heal"     // it ends
	KindCrash    Kind = "crash"    // Process was killed: kill -9, or abandoned
	KindNote     Kind = "note"     // something that excuses nothing
	KindListed   Kind = "listed"   // after the drain: an entry that the broker still has, with its State
	KindCounters Kind = "counters" // after the drain: what the broker itself counts
	KindProblem  Kind = "problem"  // after the drain: what the driver's own audit finds wrong
)

// Kinds of every process.
const (
	KindStart Kind = "start"
	KindStop  Kind = "stop"  // it ended by itself; Note tells with what
	KindClose Kind = "close" // it gives everything back from here on
)

// Kinds of a producer. Publish is written before the call, one of the others after it.
const (
	KindPublish   Kind = "publish"
	KindPublished Kind = "published"       // acknowledged
	KindRefused   Kind = "publish_refused" // failed, and nothing was stored
	KindUnknown   Kind = "publish_unknown" // may or may not be stored
)

// Kinds of a consumer.
const (
	KindClaimed   Kind = "claimed"   // Receive returned it
	KindBegin     Kind = "begin"     // written before Begin is called, the next one when it is answered
	KindBegun     Kind = "begun"     // a loss counts from here on
	KindDelivered Kind = "delivered" // its handler starts
	KindHandled   Kind = "handled"   // its handler is about to return; Note tells how
	KindExtended  Kind = "extended"  // acknowledged; Called is when it was asked
	KindSettle    Kind = "settle"    // written before the call, one of the next three after it

	KindSettled       Kind = "settled"        // acknowledged
	KindSettleRefused Kind = "settle_refused" // nothing was changed: the lease was lost, or the broker not reached
	KindSettleUnknown Kind = "settle_unknown"
)

// ServerCrash is the Note of a fault: kill -9 of a server, which is started again.
const ServerCrash = "crash"

// Unwritten is the Note of a fault that came on top of another: a server was killed while it had not yet written to its
// file what it had acknowledged.
const Unwritten = "unwritten"

// Rewinds says of the Note of a server's fault that the server may have an older state than its clients after it:
// another node took over, or its file was behind.
func Rewinds(note string) bool {
	switch note {
	case "failover", "switch", "partition", FreezePrimary, Unwritten, PowerCut, Wiped, Reset:
		return true
	}
	return false
}

// StepClock is the Note of a fault during which the broker's clock was not that of the machine.
const StepClock = "step-clock"

// PowerCut is the Note of a fault by which a server has what it had synced, and no more. It begins when that was.
const PowerCut = "power-cut"

// FreezePrimary is the Note of a fault by which another node took over from one that stood still.
const FreezePrimary = "freeze-primary"

// Reset is the Note of a fault by which a group got again what it had settled.
const Reset = "reset"

// FillBroker is the Note of a fault by which a broker has no room left: it may say that it failed to store what it has
// stored.
const FillBroker = "fill-broker"

// Wiped is the Note of a fault by which the server forgot everything there was.
const Wiped = "flush-all"

// HandledOK is the Note of a handler that succeeds.
const HandledOK = "ok"

// Event is one line of a history. Which fields it has follows from its Kind.
type Event struct {
	// At is CLOCK_MONOTONIC in nanoseconds: one clock for all processes of the machine.
	At      int64  `json:"t"`
	Kind    Kind   `json:"e"`
	Process string `json:"p,omitempty"`

	ID    string `json:"id,omitempty"`
	Topic string `json:"topic,omitempty"`
	Group string `json:"g,omitempty"`
	Key   string `json:"key,omitempty"`
	// Seq numbers the messages of one key, from 1, in the order of their publishing.
	Seq  int64  `json:"seq,omitempty"`
	Hash string `json:"hash,omitempty"`

	// Delay and TTL are nanoseconds, asked for at publish. Due is a scheduled time in Unix nanoseconds.
	Delay int64 `json:"delay,omitempty"`
	TTL   int64 `json:"ttl,omitempty"`
	Due   int64 `json:"due,omitempty"`

	Attempt    int    `json:"att,omitempty"`
	Deliveries int    `json:"del,omitempty"`
	Cause      string `json:"cause,omitempty"`
	Ref        string `json:"ref,omitempty"` // of the stored message: copies differ in it
	Token      string `json:"tok,omitempty"`
	// ClaimedAt and PublishedAt are the broker's own clock, Unix nanoseconds.
	ClaimedAt   int64 `json:"claimed,omitempty"`
	PublishedAt int64 `json:"stored,omitempty"`

	Outcome string `json:"out,omitempty"`
	After   int64  `json:"after,omitempty"` // of a retry or release, in nanoseconds
	// Called is when the call was made: messages of one publish have it in common.
	Called int64 `json:"called,omitempty"`

	// Step is how far a clock was set, in nanoseconds.
	Step int64 `json:"step,omitempty"`

	State    string             `json:"state,omitempty"`
	Note     string             `json:"note,omitempty"`
	Run      *Run               `json:"run,omitempty"`
	Counters *driver.TopicStats `json:"counters,omitempty"`
}

// Run is what a run promises to keep, and by which the checker judges it.
type Run struct {
	Broker string   `json:"broker"`
	Fault  string   `json:"fault"`
	Seed   uint64   `json:"seed"`
	Plan   []string `json:"plan,omitempty"`
	// Groups of each topic, all of them created before the first publish.
	Groups map[string][]string `json:"groups"`
	// Lease of every consumer, and how much later than it a message of a killed one may come again.
	Lease         time.Duration `json:"lease"`
	RedeliverIn   time.Duration `json:"redeliver_in"`
	MaxAttempts   int           `json:"max_attempts"`
	MaxDeliveries int           `json:"max_deliveries"`
	// Exact says that the broker's counters are exact, so that they are compared one by one.
	Exact bool `json:"exact"`
	// NoDuplicates says that nothing in this run may start a handler twice, but for retries.
	NoDuplicates bool `json:"no_duplicates,omitempty"`
	// Owned says that the broker lives in its one process: what that held when it was killed is free at once.
	Owned bool `json:"owned,omitempty"`
	// LeasesDie says that leases end with the process of the server: what anybody held when it was killed is free at once.
	LeasesDie bool `json:"leases_die,omitempty"`
	// MayForget says that a fail-over may lose what was acknowledged just before it: such losses are counted, not judged.
	// So are those of an Unwritten crash.
	MayForget bool `json:"may_forget,omitempty"`
	// Heartbeat, where leases are of whole partitions, is how much earlier than its lease a message may go to others
	// when its holder is not heard of.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// CommitIn, where claims and settlements are committed together, is how long it takes. What its holder had done
	// shortly before it died or was cut off is not known to the next.
	CommitIn time.Duration `json:"commit_in,omitempty"`
	// ClockError, where a driver reckons the broker's clock, is how far off it may be.
	ClockError time.Duration `json:"clock_error,omitempty"`
	// RecoverIn is how long after the end of a server's fault the next publish may be acknowledged.
	RecoverIn time.Duration `json:"recover_in,omitempty"`
}

// Claim describes a delivery as it was received or is being handled.
func Claim(kind Kind, d *driver.Delivery) Event {
	e := Event{
		Kind: kind, ID: d.ID, Topic: d.Topic, Group: d.Group, Key: d.Key,
		Attempt: d.Attempt, Deliveries: d.Deliveries, Cause: d.Cause.String(), Ref: d.Ref.String(),
		ClaimedAt: d.ClaimedAt.UnixNano(), PublishedAt: d.PublishedAt.UnixNano(),
	}
	if d.Token != nil {
		e.Token = d.Token.String()
	}
	return e
}

func (e *Event) line() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
