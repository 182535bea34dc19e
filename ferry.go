// Package ferry is one message queue for Go that its users do not outgrow.
//
// The same program runs on a broker inside its own process, on Redis, on Redis Streams and on Kafka, with the same
// guarantees. A program opens a broker (package open by URL, or one driver package directly), publishes with
// [Publish], and handles messages with package worker:
//
//	broker, err := open.URL(ctx, "memory://")
//	_, err = ferry.Publish(ctx, broker, "orders", Order{ID: 1}, ferry.Delay(10*time.Second))
//
// This package starts no goroutine until publishers overlap or publish asynchronously, and [Broker.Close] waits for
// all of them.
package ferry

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// What producers and handlers see. The types live in package driver, the seam that drivers implement.
type (
	// Message is what a producer publishes and a consumer gets, whole.
	Message = driver.Message
	// Delivery is one message, leased to one consumer, with its attempt and delivery counts.
	Delivery = driver.Delivery
	// Receipt tells what became of one published message.
	Receipt = driver.Receipt
	// Lane is one of the four that a topic has, by priority: Low, Normal, High, Urgent.
	Lane = driver.Priority
	// Durability is what an acknowledged publish survives.
	Durability = driver.Durability
	// RetryPolicy says when a failed message is tried again.
	RetryPolicy = driver.RetryPolicy
	// Reason says why a message became a dead letter.
	Reason = driver.Reason
	// Error is every error Ferry makes itself, with a hint that says what to do next.
	Error = driver.Error
	// UniqueError is the ErrConflict of a publish whose Unique id another message has, with that one's id.
	UniqueError = driver.UniqueError
	// Outcome is how a delivery ended: see OutcomeAck.
	Outcome = driver.Outcome
	// Position is where a new group begins: see Beginning and Since. The zero value is the end.
	Position = driver.Position
)

// What Broker.Driver is asked with, and answers: topics, groups and single messages.
type (
	// TopicConfig bounds a topic, and says how long what was handled is kept. EnsureTopic takes it.
	TopicConfig = driver.TopicConfig
	// GroupOptions describe a new group. EnsureGroup takes them.
	GroupOptions = driver.GroupOptions
	// TopicInfo is a topic and its settings.
	TopicInfo = driver.TopicInfo
	// TopicStats are the counts of a topic.
	TopicStats = driver.TopicStats
	// GroupStats are the counts of one group of a topic.
	GroupStats = driver.GroupStats

	// Query selects messages of one State. Browse takes it.
	Query = driver.Query
	// Page is some of the messages that a Query selects.
	Page = driver.Page
	// Entry is a message as one group sees it.
	Entry = driver.Entry
	// State is where a message is: "delayed", "held", "ready", "inflight", "waiting", "dead", "invalid" or "done".
	State = driver.State
	// Target names one message, by its Ref or its id. Get, Delete and package deadletter take it.
	Target = driver.Target
	// Move makes one message due, or replays a dead letter. Move takes it.
	Move = driver.Move
	// Ref locates a stored message inside its topic.
	Ref = driver.Ref

	// DeadLetter is a message that failed for good, with everything needed to understand and replay it. Package deadletter
	// works on many of them.
	DeadLetter = driver.DeadLetter
	// Failure is one failed attempt.
	Failure = driver.Failure

	// Capabilities say what a broker can do.
	Capabilities = driver.Capabilities
	// Log is what a broker can do that keeps messages in partitions: see Broker.Log.
	Log = driver.Log
)

// Outcomes of a delivery.
const (
	OutcomeAck     = driver.Ack     // handled
	OutcomeRetry   = driver.Retry   // failed, and due again
	OutcomeDead    = driver.Dead    // failed for good: a dead letter
	OutcomeRelease = driver.Release // given back, or parked: nothing is counted
	OutcomeDrop    = driver.Drop    // discarded on purpose
)

// Unlimited as MaxAttempts: a message is tried until it succeeds, or its policy's MaxElapsed is over.
const Unlimited = driver.Unlimited

// Beginning is the Position of the oldest message that TopicConfig.Keep holds.
func Beginning() Position { return Position{From: driver.FromBegin} }

// Since is the Position of the first message that became ready at t or later, of those that TopicConfig.Keep holds.
func Since(t time.Time) Position { return Position{From: driver.FromTime, Time: t} }

// The lanes of a topic. A lane with a higher priority is served more often; none starves.
const (
	Low    = driver.Low
	Normal = driver.Normal
	High   = driver.High
	Urgent = driver.Urgent
)

// What an acknowledged publish survives. See also Replicated.
const (
	InMemory = driver.InMemory
	Written  = driver.Written
	Synced   = driver.Synced
)

// Replicated survives the loss of the primary: n more copies acknowledged the write.
func Replicated(n int) Durability { return driver.Replicated(n) }

// Errors of publishing.
var (
	// ErrNotApplied: nothing was stored or changed. Safe to try again.
	ErrNotApplied = driver.ErrNotApplied
	// ErrUnknown: it may or may not have been stored. Publishing the same ID again stores it at most once.
	ErrUnknown = driver.ErrUnknown
	// ErrFull: a bound was reached. Nothing was stored.
	ErrFull = driver.ErrFull
	// ErrTooLarge: the message exceeds the size limit. Nothing was sent.
	ErrTooLarge = driver.ErrTooLarge
)

// Other errors.
var (
	// ErrLeaseLost: the delivery is no longer held; its cause cancels the handler's context.
	ErrLeaseLost = driver.ErrLeaseLost
	// ErrNotFound: no such topic, group or message.
	ErrNotFound = driver.ErrNotFound
	// ErrConflict: what exists differs from what was asked.
	ErrConflict = driver.ErrConflict
	// ErrInvalid: the input is wrong. Nothing was sent.
	ErrInvalid = driver.ErrInvalid
	// ErrUnsupported: this broker cannot do it; its Capabilities say what it can.
	ErrUnsupported = driver.ErrUnsupported
	// ErrClosed: the broker is closed.
	ErrClosed = driver.ErrClosed
	// ErrRefused: an authorise hook said no.
	ErrRefused = driver.ErrRefused
)

// Exponential is a retry policy that waits base, then twice as long each time up to limit, spread by full jitter.
func Exponential(base, limit time.Duration) RetryPolicy { return RetryPolicy{Base: base, Cap: limit} }

// Delays is a retry policy that waits exactly these times; the last one repeats. None is refused where the policy is
// used.
func Delays(delays ...time.Duration) RetryPolicy {
	return RetryPolicy{Delays: append([]time.Duration{}, delays...)}
}
