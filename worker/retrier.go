package worker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// decide turns the error of a handler into a settlement. Cause tells why its context ended while it ran, or nil.
// The error is the user's code: if asking it panics, that is a failure like any other.
func (c *consumer) decide(r *run, err, cause error) (s driver.Settlement) {
	defer func() {
		if p := recover(); p != nil {
			s = c.retry(r, &crash{value: p, stack: string(debug.Stack())}, nil)
		}
	}()
	var d *decision
	switch {
	case errors.As(err, &d) && !(d.outcome == driver.Retry && d.policy):
		return c.obey(r, d, err)
	case errors.Is(cause, ErrStopping), errors.Is(cause, ferry.ErrLeaseLost):
		return driver.Settlement{Delivery: r.d, Outcome: driver.Release} // we made it fail: that is no attempt
	}
	return c.retry(r, err, cause)
}

// obey settles as the handler decided.
func (c *consumer) obey(r *run, d *decision, err error) driver.Settlement {
	s := driver.Settlement{Delivery: r.d, Outcome: d.outcome}
	switch d.outcome {
	case driver.Release:
		s.After = max(0, d.after)
	case driver.Dead:
		s.Failure = failure(r, d.reason, err)
	case driver.Retry:
		if r.d.Attempt >= c.attempts(r.d) {
			return c.bury(r, driver.ReasonMaxAttempts, err)
		}
		s.After, s.Failure = max(0, d.after), failure(r, "", err)
	}
	return s
}

// retry settles a failed attempt: by the policy, until attempts or time are used up.
func (c *consumer) retry(r *run, err, cause error) driver.Settlement {
	var reason driver.Reason
	var crashed *crash
	switch {
	case errors.As(err, &crashed):
		reason = driver.ReasonPanic
	case errors.Is(cause, ErrTimeout):
		reason = driver.ReasonTimeout
	}
	policy := c.retryPolicy
	if r.d.Retry != nil {
		policy = resolvePolicy(*r.d.Retry)
	}
	after, again := policy.Next(r.d.Attempt, r.d.ID, r.d.ClaimedAt.Sub(r.d.PublishedAt))
	if again && r.d.Attempt < c.attempts(r.d) {
		return driver.Settlement{Delivery: r.d, Outcome: driver.Retry, After: after, Failure: failure(r, reason, err)}
	}
	if reason == "" {
		reason = driver.ReasonMaxAttempts
	}
	return c.bury(r, reason, err)
}

func (c *consumer) bury(r *run, reason driver.Reason, err error) driver.Settlement {
	return driver.Settlement{Delivery: r.d, Outcome: driver.Dead, Failure: failure(r, reason, err)}
}

// attempts is how often d may be tried in all.
func (c *consumer) attempts(d *driver.Delivery) int {
	if d.MaxAttempts > 0 {
		return d.MaxAttempts
	}
	return c.maxAttempts
}

func failure(r *run, reason driver.Reason, err error) *driver.Failure {
	f := &driver.Failure{Duration: r.duration, Reason: reason, Error: err.Error()}
	var crashed *crash
	if errors.As(err, &crashed) {
		f.Stack = crashed.stack
	}
	return f
}

// timedOut settles a run whose handler did not return in time.
func (c *consumer) timedOut(r *run) driver.Settlement {
	err := driver.NewError(ErrTimeout, fmt.Sprintf("the handler did not return within %v, nor %v after its context ended", c.timeout, timeoutGrace),
		"pass its context on to everything that waits", nil)
	return c.retry(r, err, ErrTimeout)
}

// tooManyDeliveries settles a message that keeps losing its lease, without running it.
func (c *consumer) tooManyDeliveries(d *driver.Delivery) driver.Settlement {
	return driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: &driver.Failure{
		Reason: driver.ReasonMaxDeliveries,
		Error:  fmt.Sprintf("lost its lease %d times, the last one by a crash, a hang, or a backend that was away", d.Deliveries-1),
	}}
}

// timeoutGrace is how long a handler may take to return after its context ended.
const timeoutGrace = time.Second
