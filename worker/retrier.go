package worker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// failed is an attempt that failed.
type failed struct {
	err   error
	cause error // why its context ended while the handler ran, or nil
	took  time.Duration
}

// decide turns a failed attempt into a settlement. Its error is the user's code: if asking it panics, that is a failure
// like any other.
func (c *consumer) decide(r *run, f failed) (s settlement) {
	defer func() {
		if p := recover(); p != nil {
			s = c.retry(r, failed{err: &crash{value: p, stack: string(debug.Stack())}, took: f.took})
		}
	}()
	var d *decision
	switch {
	case errors.As(f.err, &d) && (d.outcome != driver.Retry || !d.policy):
		return c.obey(r, d, f)
	case errors.Is(f.cause, ErrStopping), errors.Is(f.cause, ferry.ErrLeaseLost):
		return released(r, f.took) // we made it fail: that is no attempt
	}
	return c.retry(r, f)
}

// obey settles as the handler decided.
func (c *consumer) obey(r *run, d *decision, f failed) settlement {
	s := settlement{Delivery: r.d, Outcome: d.outcome}
	switch d.outcome {
	case driver.Release:
		s.After = max(0, d.after)
	case driver.Dead:
		s.Failure = f.failure(d.reason)
	case driver.Retry:
		if r.d.Attempt >= c.attempts(r.d) {
			return bury(r, driver.ReasonMaxAttempts, f)
		}
		s.After, s.Failure = max(0, d.after), f.failure("")
	}
	return s
}

// retry settles a failed attempt: by the policy, until attempts or time are used up.
func (c *consumer) retry(r *run, f failed) settlement {
	after, again := c.wait(r.d, &f)
	var reason driver.Reason
	var crashed *crash
	switch {
	case errors.As(f.err, &crashed):
		reason = driver.ReasonPanic
	case errors.Is(f.cause, ErrTimeout):
		reason = driver.ReasonTimeout
	}
	if again && r.d.Attempt < c.attempts(r.d) {
		return settlement{Delivery: r.d, Outcome: driver.Retry, After: after, Failure: f.failure(reason)}
	}
	if reason == "" {
		reason = driver.ReasonMaxAttempts
	}
	return bury(r, reason, f)
}

// wait is how long d waits after a failed attempt: by its own policy, the handler's function or the handler's policy.
// It reports false when its time is over.
func (c *consumer) wait(d *driver.Delivery, f *failed) (time.Duration, bool) {
	policy := c.retryPolicy
	switch {
	case d.Retry != nil:
		policy = resolvePolicy(*d.Retry)
	case c.backoff != nil:
		if after, ok := c.askBackoff(d, f); ok {
			return max(0, after), true
		}
	}
	return policy.Next(d.Attempt, d.ID, d.ClaimedAt.Sub(d.PublishedAt))
}

// askBackoff asks the handler's function. It is the user's code: if it panics, that is how the attempt failed, and the
// policy decides.
func (c *consumer) askBackoff(d *driver.Delivery, f *failed) (after time.Duration, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			f.err = &crash{value: p, stack: string(debug.Stack())}
		}
	}()
	return c.backoff(d.Attempt, f.err), true
}

func bury(r *run, reason driver.Reason, f failed) settlement {
	return settlement{Delivery: r.d, Outcome: driver.Dead, Failure: f.failure(reason)}
}

// attempts is how often d may be tried in all.
func (c *consumer) attempts(d *driver.Delivery) int {
	if d.MaxAttempts > 0 {
		return d.MaxAttempts
	}
	return c.maxAttempts
}

func (f failed) failure(reason driver.Reason) *driver.Failure {
	out := &driver.Failure{Duration: f.took, Reason: reason, Error: f.err.Error()}
	var crashed *crash
	if errors.As(f.err, &crashed) {
		out.Stack = crashed.stack
	}
	return out
}

// timedOut settles a run whose handler did not return in time.
func (c *consumer) timedOut(r *run, took time.Duration) settlement {
	err := driver.NewError(ErrTimeout,
		fmt.Sprintf("the handler did not return within %v, nor %v after its context ended", c.timeout, timeoutGrace),
		"pass its context on to everything that waits", nil)
	return c.retry(r, failed{err, ErrTimeout, took})
}

// tooManyDeliveries settles a message that its processes do not survive, without running it.
func (c *consumer) tooManyDeliveries(d *driver.Delivery) settlement {
	return settlement{Delivery: d, Outcome: driver.Dead, Failure: &driver.Failure{
		Reason: driver.ReasonMaxDeliveries,
		Error:  fmt.Sprintf("%d processes that ran it, or held it, were never heard of again", d.Deliveries-1),
	}}
}

// timeoutGrace is how long a handler may take to return after its context ended.
const timeoutGrace = time.Second
