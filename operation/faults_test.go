package operation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/operation"
)

// Answers that are lost, and writes that are, change nothing: each operation ends once, with the right counts.
func TestLostAnswers(t *testing.T) {
	virtual(t, func(r *rig) {
		f := faulty.New(r.d)
		f.Set(faulty.Write, faulty.ByNumber(func(n int) faulty.Fault {
			return []faulty.Fault{nil, faulty.Lose(driver.ErrUnknown), faulty.Fail(driver.ErrUnknown)}[n%3]
		}))
		q := r.queue(f)
		op, err := q.Submit(r.Context(), operation.Request{Kind: "march", Args: march{Steps: 50}})
		r.ok(err)
		cancelled, err := q.Submit(r.Context(), operation.Request{Kind: "march", Args: march{Steps: 500}})
		r.ok(err)
		r.worker(q, operation.WorkerOptions{Instance: "one"})
		pass(4 * time.Minute)
		r.ok(q.Cancel(r.Context(), cancelled.ID))
		pass(time.Minute)
		if got := r.get(op.ID); got.State != operation.Done || got.Done != 45 || got.Skipped != 5 {
			r.Errorf("%+v", got)
		}
		if got := r.get(cancelled.ID); got.State != operation.Cancelled {
			r.Errorf("%+v", got)
		}
		r.marched(op.ID, 50, 20)
	})
}

// frozen makes a worker a process that is paused: none of its writes arrives until it is let go, and then all do.
func frozen(f *faulty.Driver) (thaw func()) {
	gate := make(chan struct{})
	f.Set(faulty.Write, func(ctx context.Context, _ faulty.Call, _ func()) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return driver.ErrUnknown
		}
	})
	return func() { close(gate) }
}

// A worker that hears nothing any more stops before another begins, and another goes on after its lease.
func TestLostLease(t *testing.T) {
	virtual(t, func(r *rig) {
		f := faulty.New(r.d)
		id := r.submit(march{Steps: 60})
		r.worker(r.queue(f), operation.WorkerOptions{Instance: "one"})
		pass(10*time.Second + 500*time.Millisecond)
		r.worker(r.q, operation.WorkerOptions{Instance: "two"})
		pass(time.Second)
		thaw := frozen(f)
		pass(7 * time.Second)
		if op := r.get(id); op.State != operation.Running || op.Worker != "two" || op.Takes != 2 {
			r.Errorf("%+v", op)
		}
		pass(10 * time.Second)
		thaw()
		pass(time.Minute)
		op := r.get(id)
		if op.State != operation.Done || op.Worker != "two" || op.Takes != 2 {
			r.Errorf("%+v", op)
		}
		r.marched(id, 60, 2) // rig.march fails the test if two ever work at once
	})
}

// stubborn is a worker that does not look at its context: it goes on after its lease is lost, and saves.
func stubborn(r *rig, d driver.Driver) *operation.Queue {
	b, err := ferry.New(shared{d}, ferry.Options{})
	r.ok(err)
	r.Cleanup(func() { _ = b.Close(context.Background()) })
	q, err := operation.New(b, operation.NewKind("march",
		operation.Work[march]{Run: func(_ context.Context, t *operation.Task, _ march) error {
			time.Sleep(30 * time.Second)
			t.Did(1_000_000)
			_ = t.Save(1_000_000)
			_ = t.Sync(context.Background())
			return nil
		}}))
	r.ok(err)
	return q
}

// What a worker still writes whose lease was lost is refused: neither its counts nor its end are believed.
func TestLateWorkerIsFenced(t *testing.T) {
	for _, fence := range []bool{true, false} {
		t.Run(map[bool]string{true: "as it is", false: "planted: neither fence nor condition"}[fence], func(t *testing.T) {
			virtual(t, func(r *rig) {
				f := faulty.New(r.d)
				id := r.submit(march{Steps: 100})
				r.worker(stubborn(r, f), operation.WorkerOptions{Instance: "late"})
				pass(time.Second)
				thaw := frozen(f)
				pass(10 * time.Second)
				r.worker(r.q, operation.WorkerOptions{Instance: "two"})
				pass(15 * time.Second)
				thaw()
				if !fence {
					f.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
						if strings.HasPrefix(c.Write.Name, "op/") {
							c.Write.Fence, c.Write.If = nil, 0
						}
						return nil
					})
				}
				pass(10 * time.Second)
				op := r.get(id)
				if believed := op.Done >= 1_000_000; believed == fence {
					r.Errorf("with a fence %v: %+v", fence, op)
				}
				if !fence {
					return
				}
				pass(2 * time.Minute)
				if op := r.get(id); op.State != operation.Done || op.Worker != "two" || op.Done+op.Skipped != 100 {
					r.Errorf("%+v", op)
				}
			})
		})
	}
}

// A broker that is away for minutes ends nothing.
func TestBrokerIsAway(t *testing.T) {
	virtual(t, func(r *rig) {
		f := faulty.New(r.d)
		id := r.submit(march{Steps: 60})
		r.worker(r.queue(f), operation.WorkerOptions{})
		pass(10*time.Second + 500*time.Millisecond)
		f.Set(faulty.Write, faulty.Fail(driver.ErrNotApplied))
		pass(5 * time.Minute)
		f.Set(faulty.Write, nil)
		pass(5 * time.Minute)
		if op := r.get(id); op.State != operation.Done || op.Done != 54 {
			r.Errorf("%+v", op)
		}
	})
}

// A cancel that crosses the notes of the worker is not lost, whoever is first.
func TestCancelCrossesNotes(t *testing.T) {
	virtual(t, func(r *rig) {
		f := faulty.New(r.d)
		id := r.submit(march{Steps: 100})
		r.worker(r.q, operation.WorkerOptions{})
		pass(5*time.Second + 500*time.Millisecond)
		crossed := 0
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if strings.HasPrefix(c.Write.Name, "op/") && crossed < 3 {
				crossed++
				time.Sleep(1100 * time.Millisecond) // a note is written meanwhile
			}
			return nil
		})
		r.ok(r.queue(f).Cancel(r.Context(), id))
		pass(3 * time.Second)
		if op := r.get(id); op.State != operation.Cancelled || crossed != 3 {
			r.Errorf("%+v, crossed %d", op, crossed)
		}
	})
}

// A note that was stored although it was never answered, however often it was asked, does not end the work.
func TestUnansweredNote(t *testing.T) {
	virtual(t, func(r *rig) {
		f := faulty.New(r.d)
		id := r.submit(march{Steps: 30})
		r.worker(r.queue(f), operation.WorkerOptions{})
		pass(5*time.Second + 500*time.Millisecond)
		request, lost := "", 0
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, do func()) error {
			if request == "" && c.Write.Name == "op/"+id {
				request = c.Write.Request
			}
			if c.Write.Request == "" || c.Write.Request != request {
				return nil
			}
			lost++
			do()
			return driver.ErrUnknown
		})
		pass(40 * time.Second)
		if op := r.get(id); op.State != operation.Done || op.Takes != 1 || op.Done != 27 || lost < 5 {
			r.Errorf("%+v, %d answers lost", op, lost)
		}
		r.marched(id, 30, 0)
	})
}
