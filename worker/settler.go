package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

type settlement = driver.Settlement

var errLost = driver.NewError(ferry.ErrLeaseLost, "the message was no longer ours when its handler returned",
	"it is delivered again: make handlers idempotent, or the lease longer", nil)

var errUnsettled = driver.NewError(ferry.ErrNotApplied, "the worker stopped before the broker accepted the outcome",
	"it is delivered again: make handlers idempotent", nil)

// outbox holds outcomes on their way to the broker, in order. Guarded by engine.mu.
type outbox struct {
	wake   *sync.Cond
	parked bool // the settler waits for work

	list    []settlement
	runs    []*run // of list
	sending []*run // with the call under way
	notices []notice

	spareList []settlement // of the call before, to use again
	spareRuns []*run
}

// notice is news for the Settled hook and the log.
type notice struct {
	r       *run
	outcome driver.Outcome
	after   time.Duration   // of a retry
	failure *driver.Failure // of a retry or a dead letter that was accepted
	err     error
}

// post queues the outcome of r. Whoever posts calls settleSoon before it gives up the mutex.
func (c *consumer) post(r *run, s settlement) {
	r.state = settling
	c.outbox.list = append(c.outbox.list, s)
	c.outbox.runs = append(c.outbox.runs, r)
	c.e.unsettled++
}

// release queues the return of r, which no handler saw.
func (c *consumer) release(r *run) {
	c.post(r, settlement{Delivery: r.d, Outcome: driver.Release, Unseen: true})
}

// notify queues news for the Settled hook.
func (c *consumer) notify(r *run, o driver.Outcome, err error) {
	c.outbox.notices = append(c.outbox.notices, notice{r: r, outcome: o, err: err})
}

// settleSoon wakes the settler if it waits.
func (c *consumer) settleSoon() {
	if c.outbox.parked && (len(c.outbox.list) > 0 || len(c.outbox.notices) > 0) {
		c.outbox.parked = false
		c.outbox.wake.Signal()
	}
}

// settle sends what has accumulated, one call at a time, until the engine closes.
func (c *consumer) settle(ctx context.Context) {
	delay := backoff(0)
	for {
		list, runs, notices, ok := c.collect()
		c.announce(ctx, notices)
		if !ok {
			return
		}
		if len(list) == 0 {
			continue
		}
		errs := c.conn.Settle(ctx, list)
		c.failIfClosed(errs)
		if c.settled(ctx, list, runs, errs) {
			delay.sleep(ctx)
		} else {
			delay = 0
		}
	}
}

// collect waits for outcomes and takes them. It returns false when the engine closes.
func (c *consumer) collect() (list []settlement, runs []*run, notices []notice, ok bool) {
	e, o := c.e, &c.outbox
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(o.list) == 0 && len(o.notices) == 0 && !e.closing {
		o.parked = true
		o.wake.Wait()
	}
	if e.closing {
		c.giveUp()
		return nil, nil, o.notices, false
	}
	notices, o.notices = o.notices, nil
	list, runs = o.list, o.runs
	o.list, o.runs = o.spareList[:0], o.spareRuns[:0]
	o.spareList, o.spareRuns, o.sending = list, runs, runs
	return list, runs, notices, true
}

// settled takes in the answers, and reports whether some have to be tried again.
func (c *consumer) settled(ctx context.Context, list []settlement, runs []*run, errs []error) (again bool) {
	e := c.e
	var retry []settlement
	var retryRuns []*run
	e.mu.Lock()
	now := e.now()
	for i, r := range runs {
		err := answer(errs, i)
		e.watchDead(r, &list[i], err, now)
		if err != nil && c.mayRepeat(r, &list[i], err, now) {
			retry, retryRuns = append(retry, list[i]), append(retryRuns, r)
			continue
		}
		c.answered(r, &list[i], err)
	}
	c.outbox.sending = nil
	if len(retry) > 0 { // before what came meanwhile: order is kept
		c.outbox.list, c.outbox.runs = append(retry, c.outbox.list...), append(retryRuns, c.outbox.runs...)
	}
	notices := c.outbox.notices
	c.outbox.notices = nil
	e.offer(c)
	e.wakeSlot()
	c.makeRoom()
	e.moved()
	e.mu.Unlock()
	c.announce(ctx, notices)
	clear(list)
	clear(runs)
	return len(retry) > 0
}

// answer is the i-th of the broker's answers. A missing one means that nobody knows.
func answer(errs []error, i int) error {
	if i < len(errs) {
		return errs[i]
	}
	return ferry.ErrUnknown
}

// mayRepeat says whether a refused settlement is worth another try, and changes it if the broker will never take it.
func (c *consumer) mayRepeat(r *run, s *settlement, err error, now time.Duration) bool {
	switch {
	case errors.Is(err, ferry.ErrLeaseLost), closed(err):
		return false
	case permanent(err):
		if s.Emit == nil {
			return false
		}
		*s = c.retry(r, failed{err: err}) // its follow-ups are refused: the attempt has failed
		if c.returns(s.Outcome) {
			c.forgetRun(r)
		}
		return true
	case errors.Is(err, ferry.ErrUnknown):
		r.doubtful = true
	}
	return r.leaseUntil > now || r.begun && !r.heard
}

// answered ends the life of a run whose settlement was answered for good.
func (c *consumer) answered(r *run, s *settlement, err error) {
	e, o := c.e, s.Outcome
	e.unsettled--
	r.leave()
	c.noteUnique(r, s, err)
	switch lost := errors.Is(err, ferry.ErrLeaseLost); {
	case err == nil:
		if o == driver.Release {
			c.count.released++
		}
		if e.hooks.Settled != nil || s.Failure != nil {
			c.outbox.notices = append(c.outbox.notices, notice{r: r, outcome: o, after: s.After, failure: s.Failure})
		}
	case lost && r.doubtful:
		c.count.unconfirmed++ // it was applied the first time, most likely
	case lost && o == driver.Release: // it went back in another way
	default:
		c.count.refused++
		c.notify(r, o, err)
		c.forgetRun(r)
	}
}

// giveUp drops what could not be settled in time. Closing the subscription gives it back.
func (c *consumer) giveUp() {
	o := &c.outbox
	for i, r := range o.runs {
		c.e.unsettled--
		c.count.refused++
		c.notify(r, o.list[i].Outcome, errUnsettled)
		r.leave()
	}
	o.list, o.runs = nil, nil
}

// announce tells the Settled hook what became of outcomes, and the log of failures and of those that came to nothing.
func (c *consumer) announce(ctx context.Context, ns []notice) {
	for _, n := range ns {
		if c.e.hooks.Settled != nil {
			ev := n.r.event()
			ev.Outcome, ev.Err = n.outcome, n.err
			c.e.hooks.Settled(ctx, ev)
		}
		if n.err != nil {
			c.e.logLine(ctx, logRefused, c, n.r.d, "outcome", n.outcome, "error", n.err)
		}
		c.logOutcome(ctx, &n)
	}
}
