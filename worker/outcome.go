package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Why the context of a handler ended before the handler did: see context.Cause. The fourth is ferry.ErrLeaseLost.
var (
	// ErrTimeout: the handler ran longer than its Timeout.
	ErrTimeout = fmt.Errorf("handler timeout: %w", context.DeadlineExceeded)
	// ErrStopping: the worker stops, and StopTimeout is over.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled: somebody cancelled the message. It is dropped.
	ErrCancelled = fmt.Errorf("the message was cancelled: %w", context.Canceled)
)

// ErrAbandoned is what Run returns when handlers that ignore their context still run.
var ErrAbandoned = errors.New("handlers abandoned")

// errReturned is the cause of a context whose handler has returned.
var errReturned = errors.New("the handler has returned")

// decision is an error that says what becomes of the message.
type decision struct {
	outcome driver.Outcome
	policy  bool // for driver.Retry: wait as the retry policy says, not After
	after   time.Duration
	reason  driver.Reason
	err     error
}

func (d *decision) Error() string {
	if d.err != nil {
		return d.err.Error()
	}
	switch {
	case d.outcome == driver.Dead:
		return string(d.reason)
	case d.outcome == driver.Drop:
		return "dropped"
	case d.outcome == driver.Release:
		return fmt.Sprintf("parked for %v", d.after)
	}
	return fmt.Sprintf("retry after %v", d.after)
}

func (d *decision) Unwrap() error { return d.err }

// RetryAfter has the message retried after exactly d, whatever the policy says. It counts as an attempt.
func RetryAfter(err error, d time.Duration) error {
	return &decision{outcome: driver.Retry, after: d, err: err}
}

// Transient has the message retried by the policy, as any other error does. Nil stays nil.
func Transient(err error) error {
	if err == nil {
		return nil
	}
	return &decision{outcome: driver.Retry, policy: true, err: err}
}

// Fatal makes the message a dead letter at once: trying again cannot help. Nil stays nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &decision{outcome: driver.Dead, reason: driver.ReasonFatal, err: err}
}

// Dead makes the message a dead letter at once, for a reason of Ferry's or your own. The error may be nil.
func Dead(reason ferry.Reason, err error) error {
	if reason == "" {
		reason = driver.ReasonFatal
	}
	return &decision{outcome: driver.Dead, reason: reason, err: err}
}

// Drop discards the message: it is settled and counted, and leaves no dead letter. The error may be nil.
func Drop(err error) error { return &decision{outcome: driver.Drop, err: err} }

// Park gives the message back for d without counting an attempt, for limits and breakers. Its key waits for it. Park(0)
// gives it back at once, to whichever instance takes it next, this one included: a handler that keeps doing so goes
// round in a loop.
func Park(d time.Duration) error { return &decision{outcome: driver.Release, after: d} }

// crash is what a panic, or runtime.Goexit, in a handler becomes.
type crash struct {
	value any // nil for runtime.Goexit
	stack string
	told  bool // it is in the log; a batch has one panic for all its members
}

func (c *crash) Error() string {
	if c.value == nil {
		return "the handler ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("panic: %v", c.value)
}

func (c *crash) Unwrap() error {
	err, _ := c.value.(error)
	return err
}
