package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// Policy is what becomes of a message that a layer refuses.
type Policy uint8

const (
	// Park puts the message off until it can be expected to pass. It keeps its place and its attempts, and its key waits
	// for it. The default.
	Park Policy = iota
	// Drop discards the message: it is counted, and leaves no dead letter.
	Drop
	// Dead makes the message a dead letter at once: rate_limited, key_blocked, overload or breaker_open.
	Dead
)

func (p Policy) validate(what string) error {
	if p > Dead {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("%s: policy %d does not exist", what, p),
			"use Park, Drop or Dead", nil)
	}
	return nil
}

// Refusal is the error of a message that a layer did not let pass. On the worker's side it says what becomes of the
// message; on the publisher's side After says when it is worth trying again.
type Refusal struct {
	Layer  string // "limit", "concurrency", "dedup" or "breaker"
	Name   string // of the limit, or the breaker
	Key    string
	Reason ferry.Reason
	// After is when it is worth trying again. Forever: a block without an end.
	After time.Duration
	// Err is why the store could not be asked, or nil.
	Err error

	decision error // of package worker; nil on the publisher's side
}

// Error says who refused whom, and until when.
func (r *Refusal) Error() string {
	switch {
	case r.Err != nil:
		return fmt.Sprintf("%s %s: the guard store cannot be reached: %v", r.Layer, r.Name, r.Err)
	case r.After == Forever:
		return fmt.Sprintf("%s %s: key %.80q: %s for good", r.Layer, r.Name, r.Key, r.Reason)
	}
	return fmt.Sprintf("%s %s: key %.80q: %s, try again after %v", r.Layer, r.Name, r.Key, r.Reason,
		r.After.Round(time.Millisecond))
}

// Unwrap shows the worker what to do, and errors.Is that it was refused.
func (r *Refusal) Unwrap() []error {
	all := []error{driver.ErrRefused}
	if r.decision != nil {
		all = append(all, r.decision)
	}
	if r.Err != nil {
		all = append(all, r.Err)
	}
	return all
}

// decide makes it an error that a worker obeys.
func (r *Refusal) decide(p Policy, wait time.Duration) *Refusal {
	switch {
	case p == Drop && r.Err == nil:
		r.decision = worker.Drop(nil)
	case p == Dead && r.Err == nil:
		r.decision = worker.Dead(r.Reason, errors.New(r.Error()))
	default: // an unreachable store is no fault of the message
		r.decision = worker.Park(wait)
	}
	return r
}

// refusedBy returns the layer that an error comes from, "" if it is none of ours.
func refusedBy(err error) string {
	if err == nil {
		return ""
	}
	var r *Refusal // on the heap: not for every message that succeeds
	if errors.As(err, &r) {
		return r.Layer
	}
	return ""
}

// The names of the layers.
const (
	layerLimit       = "limit"
	layerConcurrency = "concurrency"
	layerDedup       = "dedup"
	layerBreaker     = "breaker"
)

// DefaultMaxPark is how long a message is parked at most before it is looked at again, so that an unblocked key does
// not wait for the end of its block.
const DefaultMaxPark = 30 * time.Second
