package result

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// What Wait returns of a message that has no result.
var (
	// ErrFailed: the message is a dead letter. The text says why.
	ErrFailed = errors.New("the message failed")
	// ErrCancelled: the message was cancelled, or its handler dropped it.
	ErrCancelled = errors.New("the message was cancelled or dropped")
)

// Get tells how far a message is in a group: what is kept of it or, before its first attempt has ended, where the
// broker has it. ErrNotFound if it has neither.
func Get(ctx context.Context, b *ferry.Broker, topic, group, id string) (Status, error) {
	p := placeOf(b, topic, group, id)
	if err := p.check(); err != nil {
		return Status{}, err
	}
	if s, kept, err := p.read(ctx); kept || err != nil {
		return s, err
	}
	s, is, err := p.locate(ctx)
	if is == there || err != nil && !errors.Is(err, ferry.ErrNotFound) {
		return s, err
	}
	if s, kept, err := p.read(ctx); kept || err != nil { // it was stored before the message went
		return s, err
	}
	return Status{}, p.notKept()
}

// Wait returns what the handler of a group returned for a message, as soon as it is there. It fails with ErrFailed and
// the text of the failure when the message becomes a dead letter, with ErrCancelled, with ErrNotFound when there is
// neither a message nor a result, and when ctx ends, saying how far it is.
func Wait[T any](ctx context.Context, b *ferry.Broker, topic, group, id string) (value T, err error) {
	s, err := Await(ctx, b, topic, group, id)
	if err != nil {
		return value, err
	}
	if err := placeOf(b, topic, group, id).failure(s); err != nil {
		return value, err
	}
	return Decode[T](ctx, b, s)
}

// WaitAll waits for several messages of one topic, follow-ups that were emitted together for example, until all have
// ended. Values are in the order of the ids; the error joins those of Wait, and the value of one that failed is the
// zero value.
func WaitAll[T any](ctx context.Context, b *ferry.Broker, topic, group string, ids ...string) ([]T, error) {
	values, errs := make([]T, len(ids)), make([]error, len(ids))
	for i, id := range ids { // one after another takes as long as the last of them
		values[i], errs[i] = Wait[T](ctx, b, topic, group, id)
	}
	return values, errors.Join(errs...)
}

// lookEvery is how often Await asks the broker where the message is while nothing is heard of it: it may have ended
// without a handler, expired or been removed for example.
const lookEvery = 5 * time.Second

// Await returns the status of a message as soon as it has ended, whatever its end. It fails as Wait does, except for
// how the message ended; when ctx ends the status is how far the message was.
func Await(ctx context.Context, b *ferry.Broker, topic, group, id string) (Status, error) {
	p := placeOf(b, topic, group, id)
	if err := p.check(); err != nil {
		return Status{}, err
	}
	w := waiter{place: p, known: Status{State: Waiting}}
	s, kept, err := p.read(ctx)
	if !kept && (err == nil || transient(err)) {
		s, err = w.look(ctx)
	}
	for ; err == nil && !s.State.Ended(); s, err = w.step(ctx) {
		w.known = s
	}
	if err != nil && ctx.Err() != nil {
		return w.known, driver.NewError(context.Cause(ctx), fmt.Sprintf("%s has not ended: it is %s", p, w.known.State),
			"allow more time, or see that a worker handles its group", nil)
	}
	if err != nil {
		return Status{}, err
	}
	return s, nil
}

// waiter waits for one message.
type waiter struct {
	place
	after uint64
	known Status
	gone  int // looks in a row that found nothing
}

// step waits for news, or looks where the message is if there are none for a while.
func (w *waiter) step(ctx context.Context) (Status, error) {
	short, cancel := context.WithTimeout(ctx, lookEvery)
	v, err := w.broker.Driver().KV().Wait(short, w.bucket, w.name, w.after)
	over := short.Err() != nil
	cancel()
	switch {
	case err == nil && v.Revision == 0: // expired
		w.after = 0
		return w.known, nil
	case err == nil:
		w.after, w.gone = v.Revision, 0
		s, _, err := decode(v)
		return s, err
	case ctx.Err() != nil:
		return w.known, err
	case over:
		return w.look(ctx)
	case transient(err) && sleep(ctx, time.Second): // the broker is away
		return w.known, nil
	}
	return w.known, err
}

// look asks the broker where the message is. What is kept of it counts more, once it has ended. That it is not there
// counts when it is so twice: one that is emitted with others may come a moment later than they.
func (w *waiter) look(ctx context.Context) (Status, error) {
	found, is, err := w.locate(ctx)
	if is == unknown {
		return w.known, ended(ctx, err)
	}
	if is == there {
		w.gone = 0
		if !found.State.Ended() {
			return found, nil
		}
	}
	s, kept, err := w.read(ctx)
	switch {
	case transient(err):
		return w.known, ended(ctx, err)
	case err != nil:
		return w.known, err
	case kept && s.State.Ended():
		return s, nil
	case is == there:
		return found, nil
	}
	if w.gone++; w.gone < 2 {
		return w.known, nil
	}
	return w.known, w.notKept()
}

// ended returns err if ctx has ended. Otherwise it does not matter: another look will be taken.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return nil
	}
	return err
}

// presence is what the broker knows of a message.
type presence int

const (
	unknown presence = iota // it cannot tell
	there
	absent // settled, removed, or never published
)

// locate asks the broker where the message is.
func (p place) locate(ctx context.Context) (Status, presence, error) {
	entries, err := p.broker.Driver().Get(ctx, driver.Target{Topic: p.topic, ID: p.id})
	switch {
	case errors.Is(err, ferry.ErrNotFound) && p.broker.Driver().Capabilities().GetByID == driver.LookupIndexed:
		return Status{}, absent, nil
	case err != nil:
		return Status{}, unknown, err
	}
	for i := range entries {
		if e := &entries[i]; e.Group == p.group || e.Group == "" {
			if s, ok := statusOf(e); ok {
				return s, there, nil
			}
		}
	}
	return Status{}, absent, nil
}

// statusOf tells what an entry says. False: the message is settled.
func statusOf(e *driver.Entry) (s Status, ok bool) {
	s = Status{State: Waiting, Attempt: e.Attempt}
	if n := len(e.History); n > 0 {
		s.Error = e.History[n-1].Error
	}
	switch e.State {
	case driver.StateInflight:
		s.State = Running
	case driver.StateWaiting:
		if s.Error != "" {
			s.State = Retrying
		}
	case driver.StateDead:
		s.State = Failed
		if e.Dead != nil {
			s.Error, s.Attempt, s.At = e.Dead.Error, e.Dead.Attempts, e.Dead.DiedAt
		}
	case driver.StateDone:
		return s, false
	}
	return s, true
}

// failure is the error of a message that ended without a result, or nil.
func (p place) failure(s Status) error {
	switch s.State {
	case Failed:
		return driver.NewError(ErrFailed, fmt.Sprintf("%s failed at attempt %d: %s", p, s.Attempt, s.Error),
			"see its dead letter: ferry dlq ls "+p.topic, nil)
	case Cancelled:
		return driver.NewError(ErrCancelled, fmt.Sprintf("%s was cancelled or dropped: %s", p, s.Error),
			"publish it again if it is still wanted", nil)
	}
	return nil
}

func (p place) notKept() error {
	return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("the broker has neither a result nor the message: %s", p),
		"keep results in its handler with result.Keep, and wait for them within their TTL; or topic, group or id are wrong",
		nil)
}
