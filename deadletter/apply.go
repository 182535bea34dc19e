package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// ready is a letter that was looked at again, with what becomes of it.
type ready struct {
	letter Letter
	move   driver.Move     // back to where it died
	msg    *driver.Message // or to another topic
}

// apply replays letters in order, some at a time, as fast as the rate allows.
func (op *Operation) apply(ctx context.Context, list []planned) error {
	p := pace{rate: op.replay.Rate}
	for len(list) > 0 {
		part := list[:min(p.part(), len(list))]
		list = list[len(part):]
		if !op.replay.DryRun {
			if err := p.wait(ctx, len(part)); err != nil {
				return err
			}
		} else if err := ctx.Err(); err != nil {
			return err
		}
		if err := op.step(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// stepTimeout bounds one step, which the end of the operation's context does not interrupt: its outcome would be
// unknown.
const stepTimeout = 2 * time.Minute

// step looks at some letters again and replays those that are as they were.
func (op *Operation) step(ctx context.Context, part []planned) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	going := make([]ready, 0, len(part))
	for i, now := range op.lookAgain(ctx, part) {
		r, out, err := op.prepare(ctx, part[i], now)
		switch {
		case permanent(err):
			op.skip(out, err)
		case err != nil:
			return err
		default:
			going = append(going, r)
		}
	}
	switch {
	case op.replay.DryRun:
		for _, r := range going {
			op.succeed(outcomeOf(r.letter))
		}
		return nil
	case op.replay.remove:
		return op.bury(ctx, going)
	case op.replay.To != "":
		return op.forward(ctx, going)
	}
	return op.moveBack(ctx, going)
}

// looksAtOnce is how many letters are looked at again at the same time: most of a look is waiting for the broker.
const looksAtOnce = 8

// looked is a letter as it is now, or why there is none.
type looked struct {
	Letter
	err error
}

// lookAgain reads letters that the plan does not have.
func (op *Operation) lookAgain(ctx context.Context, part []planned) []looked {
	now := make([]looked, len(part))
	room := make(chan struct{}, looksAtOnce)
	var all sync.WaitGroup
	for i, p := range part {
		if p.letter != nil {
			now[i].Letter = *p.letter
			continue
		}
		room <- struct{}{}
		all.Go(func() {
			now[i].Letter, now[i].err = op.queue.Get(ctx, p.target)
			<-room
		})
	}
	all.Wait()
	return now
}

// prepare takes a letter as it is now, and edits its message. An error that is not permanent ends the operation.
func (op *Operation) prepare(ctx context.Context, p planned, now looked) (r ready, out LetterReport, err error) {
	out = LetterReport{Topic: p.target.Topic, Group: p.target.Group, Ref: p.target.Ref, ID: p.target.ID}
	l, err := now.Letter, now.err
	if err != nil {
		if errors.Is(err, driver.ErrNotFound) || errors.Is(err, driver.ErrConflict) {
			err = errGone
		}
		return r, out, err
	}
	out = outcomeOf(l)
	if l.rounds() != p.rounds {
		return r, out, errAgain
	}
	r = ready{letter: l, move: driver.Move{Target: p.target, After: op.replay.After, To: op.replay.ToGroup}}
	if op.replay.Edit == nil && op.replay.To == "" {
		return r, out, nil
	}
	topic := l.From
	if op.replay.To != "" {
		topic = op.replay.To
	}
	m, err := op.queue.edited(ctx, l, op.replay.Edit, topic)
	if err != nil {
		if !permanent(err) { // the user's own
			err = driver.NewError(driver.ErrInvalid, "the edit failed", "mend the edit, or the letter", err)
		}
		return r, out, err
	}
	if hook := op.queue.broker.Hooks().Publishing; hook != nil && !op.replay.DryRun {
		hook(ctx, m)
	}
	if op.replay.To != "" {
		m = forwarded(l, m, op.replay.After)
		r.msg = m
		err = m.Validate(op.queue.maxBody)
	} else {
		r.move.Edit = m
		m.ID = cmp.Or(m.ID, driver.EmitID(l.From+"/invalid/"+l.Ref.String(), 0)) // that a filter binds to
	}
	if err == nil {
		err = op.queue.broker.ApplyFilters(ctx, m)
	}
	return r, out, err
}

// moveBack makes letters ready again in their own group, in one atomic step each.
func (op *Operation) moveBack(ctx context.Context, list []ready) error {
	moves := make([]driver.Move, len(list))
	for i, r := range list {
		moves[i] = r.move
	}
	errs := op.queue.driver.Move(ctx, moves)
	var failed error
	for i, r := range list {
		err := answer(errs, i)
		if errors.Is(err, driver.ErrUnknown) {
			err = op.learn(ctx, r)
		}
		switch {
		case err == nil:
			op.succeed(outcomeOf(r.letter))
		case permanent(err):
			op.skip(outcomeOf(r.letter), err)
		case failed == nil:
			failed = fmt.Errorf("replay of letter %s: %w", r.letter.name(), err)
		}
	}
	return failed
}

func answer(errs []error, i int) error {
	if i < len(errs) {
		return errs[i]
	}
	return driver.ErrUnknown
}

// learnTries is how often an outcome is asked for that was not learnt.
const learnTries = 5

// learn finds out whether a move took place whose answer was lost, and repeats it if it did not.
func (op *Operation) learn(ctx context.Context, r ready) (err error) {
	for try := range learnTries {
		if err = sleep(ctx, time.Duration(try)*200*time.Millisecond); err != nil {
			return err
		}
		l, err := op.queue.Get(ctx, r.move.Target)
		switch {
		case errors.Is(err, driver.ErrNotFound), errors.Is(err, driver.ErrConflict):
			return nil // it is not dead any more: that was us
		case err != nil:
			continue
		case l.rounds() != r.letter.rounds():
			return nil // and it has died again since
		}
		if err = answer(op.queue.driver.Move(ctx, []driver.Move{r.move}), 0); err == nil || permanent(err) {
			return err
		}
	}
	return errUnlearnt
}

var errUnlearnt = driver.NewError(driver.ErrUnknown, "the broker did not say whether it was replayed",
	"see whether the broker is reachable, and begin the replay again", nil)

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
