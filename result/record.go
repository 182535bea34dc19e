package result

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// record is what one delivery writes. Several goroutines of its handler may.
type record struct {
	k *keeper
	d *ferry.Delivery
	place

	mu       sync.Mutex
	revision uint64 // of our last write; 0: none
	seq      int
	returned bool
	step     Step
	stepped  time.Time // when a step was last written
}

func newRecord(k *keeper, d *ferry.Delivery) *record {
	return &record{k: k, d: d, place: placeOf(k.broker, d.Topic, d.Group, d.ID)}
}

// begun replaces what an earlier delivery of the message left. A first one finds nothing, and writes nothing.
func (r *record) begun(ctx context.Context) {
	if r.d.Attempt == 1 && r.d.Cause == driver.CauseFirst {
		return
	}
	if err := r.put(ctx, Status{State: Running}); err != nil {
		r.k.notKept(ctx, r.d, err)
	}
}

// lastWrite bounds what is written when the handler has ended, and its context may have.
const lastWrite = 5 * time.Second

// ended keeps how the attempt ended, before that is settled.
func (r *record) ended(ctx context.Context, err error) {
	outcome, ok := worker.OutcomeOf(ctx, err)
	if !ok {
		return // another delivery tells what becomes of it
	}
	s, write := r.conclusion(outcome, err)
	if !write {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	if err := r.put(ctx, s); err != nil {
		r.k.notKept(ctx, r.d, err)
	}
}

// conclusion is what to write about an attempt that ended so, if anything.
func (r *record) conclusion(outcome ferry.Outcome, err error) (s Status, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		s.Error = err.Error()
	}
	switch outcome {
	case ferry.OutcomeRetry:
		s.State = Retrying
	case ferry.OutcomeDead:
		s.State = Failed
	case ferry.OutcomeDrop:
		s.State = Cancelled
	case ferry.OutcomeRelease:
		return Status{State: Waiting}, r.revision != 0
	default:
		return Status{State: Done}, !r.returned
	}
	return s, true
}

// A write that the broker did not take, or did not answer, is tried again for about a second and a half.
const (
	putTries = 6
	putPause = 50 * time.Millisecond
)

// put writes s with the progress so far, unless a later delivery, or a later write of this one, was there before.
func (r *record) put(ctx context.Context, s Status) error {
	at, If := r.next(&s)
	data, err := encode(s, at)
	if err != nil {
		return err
	}
	pause := putPause
	for try := 1; ; try++ {
		res := r.broker.Driver().KV().Apply(ctx, r.bucket, driver.KVOptions{},
			driver.Write{Name: r.name, Data: data, If: If, TTL: r.k.ttl})[0]
		switch {
		case res.Err == nil:
			r.wrote(res.Revision)
			return nil
		case errors.Is(res.Err, ferry.ErrConflict):
			var done bool
			if If, done, err = r.contend(at, res.Value); done || err != nil {
				return err
			}
		case !transient(res.Err), !sleep(ctx, pause):
			return res.Err
		default:
			pause *= 2
		}
		if try == putTries {
			return res.Err
		}
	}
}

// contend decides what to do about another value: write over it, under its revision, or leave it. What we wrote
// ourselves, and the answer was lost, is written over.
func (r *record) contend(at stamp, found driver.Value) (again driver.Condition, done bool, err error) {
	if found.Revision == 0 {
		return driver.Absent, false, nil // expired meanwhile
	}
	_, theirs, err := decode(found)
	switch {
	case err != nil: // not ours to judge, and of no use to anybody
		return driver.Condition(found.Revision), false, nil
	case theirs.after(at) && theirs.Token == at.Token:
		return 0, true, nil // another goroutine of the handler had more to say
	case theirs.after(at):
		return 0, false, driver.NewError(ferry.ErrLeaseLost, "a later delivery has written the result of "+r.String(),
			"return from the handler: the message is not its own any more", nil)
	}
	return driver.Condition(found.Revision), false, nil
}

// next numbers a write and completes what it says.
func (r *record) next(s *Status) (stamp, driver.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	s.Progress = r.step
	at := stamp{Token: r.d.Token.String(), Claimed: r.d.ClaimedAt.UnixMicro(), Deliveries: r.d.Deliveries,
		Attempt: r.d.Attempt, Seq: r.seq}
	if r.revision == 0 {
		return at, driver.Absent
	}
	return at, driver.Condition(r.revision)
}

func (r *record) wrote(revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = max(r.revision, revision)
}

// transient reports whether a call is worth another try.
func transient(err error) bool {
	return errors.Is(err, ferry.ErrNotApplied) || errors.Is(err, ferry.ErrUnknown)
}

// sleep waits for d, and reports whether ctx lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
