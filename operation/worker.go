package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
)

// WorkerOptions of a Worker. The zero value is fine.
type WorkerOptions struct {
	// Instance names this worker. Defaults to host, process id and a random part.
	Instance string
	// Lease is how soon another worker goes on after a crash. At least a second. Defaults to cluster.DefaultTTL.
	Lease time.Duration
	// Every is how often progress is noted in the broker, and a cancel noticed. Defaults to a second.
	Every time.Duration
	// OnError is told what keeps the worker from working. It tries again. May be nil.
	OnError func(err error)
}

// Worker does operations, one after the other. Any number may run: an operation is done by one at a time, and gone on
// with by another when its worker stops or is killed.
type Worker struct {
	queue *Queue
	o     WorkerOptions
	later map[string]time.Time // operations that failed, until when they wait
}

// NewWorker checks the options and returns a worker. It does what the queue knows.
func NewWorker(q *Queue, o WorkerOptions) (*Worker, error) {
	bad := func(text, hint string) (*Worker, error) {
		return nil, driver.NewError(ferry.ErrInvalid, text, hint, nil)
	}
	switch {
	case q == nil:
		return bad("the queue is nil", "make one with operation.New")
	case len(q.kinds) == 0:
		return bad("the queue knows no kind of operation",
			"give operation.New some, those of package operation/kinds for example")
	case o.Lease != 0 && o.Lease < driver.MinValueTTL || o.Every < 0:
		return bad("Lease or Every is too short",
			fmt.Sprintf("leave it zero for the default; a lease is %v at least", driver.MinValueTTL))
	case len(o.Instance) > driver.MaxNameLen:
		return bad(fmt.Sprintf("the name of the instance has %d bytes", len(o.Instance)),
			fmt.Sprintf("use at most %d", driver.MaxNameLen))
	}
	if o.Instance == "" {
		o.Instance = instance.Unique()
	}
	o.Lease, o.Every = cmp.Or(o.Lease, cluster.DefaultTTL), cmp.Or(o.Every, time.Second)
	return &Worker{queue: q, o: o, later: map[string]time.Time{}}, nil
}

// Run does operations as they come, until ctx ends. It then returns nil, and another worker goes on with the one at
// hand. A broker that is away for a time does not end it. A Worker runs once at a time.
func (w *Worker) Run(ctx context.Context) error { return w.work(ctx, func(int) bool { return false }) }

// Drain does operations until none is open of the kinds that the worker knows, or ctx ends.
func (w *Worker) Drain(ctx context.Context) error {
	return w.work(ctx, func(open int) bool { return open == 0 })
}

const (
	errorPause = time.Second      // after an error of the broker
	laterPause = 5 * time.Second  // before an operation that failed is tried again
	longest    = 30 * time.Second // between two looks, although nobody told of a change
)

// work does operations until ctx ends, or enough says so of how many are open.
func (w *Worker) work(ctx context.Context, enough func(open int) bool) error {
	for ctx.Err() == nil {
		look, err := w.look(ctx)
		var worked bool
		if err == nil {
			worked, err = w.doFirst(ctx, look.ops)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ferry.ErrClosed), errors.Is(err, ferry.ErrInvalid), errors.Is(err, ferry.ErrUnsupported),
			errors.Is(err, ferry.ErrRefused):
			return err
		case err != nil:
			if w.o.OnError != nil {
				w.o.OnError(err)
			}
			sleep(ctx, errorPause)
		case worked:
		case enough(len(look.ops)):
			return nil
		default:
			w.await(ctx, look)
		}
	}
	return nil
}

// look is what there was to do.
type look struct {
	ops      []candidate // of the worker's kinds
	revision uint64
}

func (w *Worker) look(ctx context.Context) (look, error) {
	all, revision, err := w.queue.open(ctx)
	l := look{revision: revision}
	for _, c := range all {
		if k, ok := w.queue.kinds[c.Kind]; ok && k.reads(c.Args) { // otherwise it is for another program, or a newer version
			l.ops = append(l.ops, c)
		}
	}
	return l, err
}

// await waits until there may be something to do: something was submitted or given up, or a lock ends because its
// holder was killed.
func (w *Worker) await(ctx context.Context, l look) {
	wait := longest
	for _, c := range l.ops {
		switch until, failed := w.later[c.id]; {
		case c.lock.Revision != 0:
			wait = min(wait, c.lock.Left+pause)
		case failed:
			wait = min(wait, time.Until(until))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, max(wait, pause))
	defer cancel()
	if _, _, err := w.queue.kv.Changes(ctx, bucket, l.revision); err != nil && !errors.Is(err, ferry.ErrNotFound) {
		sleep(ctx, errorPause) // unless only nothing has changed
	}
}

// doFirst works on the first operation that is free, and reports whether there was one.
func (w *Worker) doFirst(ctx context.Context, ops []candidate) (bool, error) {
	maps.DeleteFunc(w.later, func(_ string, until time.Time) bool { return !time.Now().Before(until) })
	for _, c := range ops {
		if _, failed := w.later[c.id]; failed || c.lock.Revision != 0 {
			continue
		}
		switch err := w.do(ctx, c.id); {
		case errors.Is(err, errTaken):
		case err != nil:
			w.later[c.id] = time.Now().Add(laterPause)
			return false, fmt.Errorf("operation %s: %w", c.id, err)
		default:
			return true, nil
		}
	}
	return false, nil
}

// errTaken says that somebody else was faster.
var errTaken = errors.New("the operation is taken")

// do works on one operation. Its lock outlives ctx, until what was done is noted.
func (w *Worker) do(ctx context.Context, id string) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	acquired := context.AfterFunc(ctx, end)
	lock, err := cluster.TryAcquire(life, w.queue.broker, lockPrefix+id,
		cluster.LockOptions{Bucket: bucket, TTL: w.o.Lease, Owner: w.o.Instance})
	acquired()
	switch {
	case errors.Is(err, ferry.ErrConflict):
		return errTaken
	case err != nil:
		return err
	}
	return w.take(ctx, lock, id)
}
