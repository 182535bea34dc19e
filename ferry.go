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
)

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

// Delays is a retry policy that waits exactly these times; the last one repeats.
func Delays(delays ...time.Duration) RetryPolicy { return RetryPolicy{Delays: delays} }
