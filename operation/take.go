package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

var (
	errCancelled = errors.New("the operation was cancelled")
	errPanic     = errors.New("it panicked")
)

// take is one worker's turn at an operation, while it holds the lock.
type take struct {
	queue *Queue
	lock  *cluster.Lock
	task  *Task
	kind  Kind

	mu sync.Mutex // of what is stored
	stored
}

// take works on an operation whose lock it holds, and gives the lock back. An error means that somebody has to go on
// with it.
func (w *Worker) take(ctx context.Context, lock *cluster.Lock, id string) (err error) {
	defer func() {
		if released := lock.Release(context.WithoutCancel(ctx)); err == nil && !errors.Is(released, ferry.ErrLeaseLost) {
			err = released
		}
	}()
	s, _, err := w.queue.read(lock.Context(), id)
	switch {
	case errors.Is(err, ferry.ErrNotFound), err == nil && s.End != "":
		return nil // it has ended since it was listed
	case err != nil:
		return err
	}
	t := &take{queue: w.queue, lock: lock, stored: s, kind: w.queue.kinds[s.Kind]}
	t.task = &Task{id: id, submitted: s.Submitted, dry: s.DryRun, progress: s.Progress,
		checkpoint: s.Checkpoint, store: t.note}
	if s.Cancel { // before this worker came
		return t.end(Cancelled, "")
	}
	t.Worker, t.Problem = w.o.Instance, ""
	t.Takes++
	if err = t.note(lock.Context()); err == nil {
		err = t.work(ctx, w.o.Every)
	}
	return t.finish(ctx, err)
}

// work runs the operation, notes how far it is, and returns what it ended with. A cancel, a stop and a lost lock end
// its context.
func (t *take) work(ctx context.Context, every time.Duration) error {
	working, end := context.WithCancelCause(t.lock.Context())
	defer end(nil)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- t.run(working) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil && working.Err() != nil {
				err = context.Cause(working)
			}
			return err
		case <-tick.C:
		}
		if working.Err() != nil {
			continue
		}
		switch err := t.note(working); {
		case errors.Is(err, errCancelled), errors.Is(err, ferry.ErrLeaseLost), errors.Is(err, ferry.ErrConflict):
			end(err) // what is not noted for another reason is noted the next time
		}
	}
}

// run calls the work of the kind. A panic is an error: it would end every worker that goes on with it.
func (t *take) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the work of kind %s panicked: %v", t.Kind, p),
				"mend the kind, and submit it again", errPanic)
		}
	}()
	return t.kind.run(ctx, t.task, t.Args)
}

// note stores how far the operation is. Somebody may have cancelled it meanwhile, which is errCancelled; ErrConflict
// says that it has ended or is gone.
func (t *take) note(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.task.note(&t.record)
	err := t.write(ctx, 0)
	if err == nil && t.Cancel {
		err = errCancelled
	}
	return err
}

// write stores the record over what this take knows, under the fence of its lock. So what it finds instead is a cancel,
// which is taken over, or a write of its own whose answer was lost.
func (t *take) write(ctx context.Context, ttl time.Duration) error {
	for {
		data, err := t.encode()
		if err != nil {
			return err
		}
		quiet := ttl == 0 && !t.Started.IsZero() // what begins and what ends is told
		r := t.queue.write(ctx, driver.Write{Name: opPrefix + t.id, Data: data, If: driver.Condition(t.revision), TTL: ttl,
			Fence: t.lock.Fence(), Quiet: quiet})
		if r.Err == nil {
			t.revision = r.Revision
			if t.Started.IsZero() {
				t.Started = r.Written.UTC()
			}
			return nil
		}
		if !errors.Is(r.Err, ferry.ErrConflict) || r.Revision == 0 {
			return r.Err
		}
		now, err := decode(r.Value)
		if err != nil || now.End != "" {
			return errors.Join(r.Err, err)
		}
		t.revision, t.Cancel = now.revision, t.Cancel || now.Cancel
	}
}

// finish stores how a take ended. An error means that somebody has to go on with the operation.
func (t *take) finish(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return t.end(Done, "")
	case errors.Is(err, errCancelled):
		return t.end(Cancelled, "")
	case errors.Is(err, ferry.ErrLeaseLost), t.lock.Err() != nil:
		return nil // another goes on, or it is over
	case ctx.Err() != nil: // told to stop: whoever goes on begins here
		_ = t.note(t.lock.Context())
		return nil
	case ending(err):
		return t.end(Failed, cut(err.Error(), maxProblem))
	}
	t.mu.Lock()
	t.Problem = cut(err.Error(), maxProblem)
	t.mu.Unlock()
	_ = t.note(t.lock.Context())
	return err
}

// ending reports whether an error of the work can never be mended by trying again.
func ending(err error) bool {
	for _, kind := range [...]error{ferry.ErrInvalid, ferry.ErrNotFound, ferry.ErrConflict, ferry.ErrTooLarge,
		ferry.ErrUnsupported, ferry.ErrRefused} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// end stores that the operation has ended, trying as long as the lock is held: otherwise the next worker finds nothing
// left to do, and says so.
func (t *take) end(state State, problem string) error {
	ctx := t.lock.Context()
	for {
		now := t.queue.write(ctx, driver.Write{Name: clockName, TTL: driver.MinValueTTL, Quiet: true})
		if now.Err == nil {
			t.mu.Lock()
			t.End, t.Ended, t.Problem = state, now.Written.UTC(), problem
			t.task.note(&t.record)
			now.Err = t.write(ctx, History)
			t.mu.Unlock()
		}
		switch {
		case now.Err == nil, errors.Is(now.Err, ferry.ErrLeaseLost), errors.Is(now.Err, ferry.ErrConflict):
			return nil // ended, or another goes on
		case permanent(now.Err), !sleep(ctx, pause):
			return now.Err
		}
	}
}
