package worker

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// OutcomeOf tells middleware what becomes of the message of a handler's context if its handler ends with err, which may
// be nil: attempts, policy, cancellation and the end of the worker are reckoned with, and Backoff is asked once more.
// It reports false where that is not for err to say: the broker has said that the lease is lost, the handler was given
// up, or ctx is neither that of a handler of single messages nor that of middleware.
//
// What it tells is what is going to be sent. The broker may still refuse it, and the message comes again.
func OutcomeOf(ctx context.Context, err error) (o ferry.Outcome, ok bool) {
	r, is := ctx.Value(runKey{}).(*run)
	lead := r
	if m, in := ctx.Value(memberKey{}).(*member); in {
		r = m.run()
	}
	if !is || r == nil || r.batch != nil || !r.judged(lead) {
		return 0, false
	}
	switch {
	case err == nil:
		return driver.Ack, true
	case r.cancelled.Load():
		return driver.Drop, true
	}
	return r.c.decide(r, failed{err: err, cause: lead.cause()}).Outcome, true
}

// judged reports whether what the handler of r returns will decide about its message. The lead is r itself, or that of
// its batch.
func (r *run) judged(lead *run) bool {
	e := r.c.e
	e.mu.Lock()
	defer e.mu.Unlock()
	return r.state == running && !lead.abandoned && !r.refused
}
