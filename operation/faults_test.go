package operation_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

// fault stands in for writes of named values.
type fault func(ctx context.Context, ws []driver.Write, apply func() []driver.WriteResult) []driver.WriteResult

// faulty is a broker whose named values can be made to misbehave.
type faulty struct {
	driver.Driver
	apply atomic.Pointer[fault]
}

func (f *faulty) KV() driver.KV { return faultyKV{f.Driver.KV(), f} }

func (f *faulty) set(to fault) { f.apply.Store(&to) }

type faultyKV struct {
	driver.KV
	f *faulty
}

func (k faultyKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	apply := func() []driver.WriteResult { return k.KV.Apply(ctx, bucket, o, ws...) }
	if fault := k.f.apply.Load(); fault != nil && *fault != nil {
		return (*fault)(ctx, ws, apply)
	}
	return apply()
}

// Answers that are lost, and writes that are, change nothing: each operation ends once, with the right counts.
func TestLostAnswers(t *testing.T) {
	virtual(t, func(r *rig) {
		f := &faulty{Driver: r.d}
		var n atomic.Int64
		f.set(func(_ context.Context, _ []driver.Write, apply func() []driver.WriteResult) []driver.WriteResult {
			switch n.Add(1) % 3 {
			case 0:
				return apply()
			case 1:
				apply()
			}
			return []driver.WriteResult{{Err: driver.ErrUnknown}}
		})
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
func frozen(f *faulty) (thaw func()) {
	gate := make(chan struct{})
	f.set(func(ctx context.Context, _ []driver.Write, apply func() []driver.WriteResult) []driver.WriteResult {
		select {
		case <-gate:
			return apply()
		case <-ctx.Done():
			return []driver.WriteResult{{Err: driver.ErrUnknown}}
		}
	})
	return func() { close(gate) }
}

// A worker that hears nothing any more stops before another begins, and another goes on after its lease.
func TestLostLease(t *testing.T) {
	virtual(t, func(r *rig) {
		f := &faulty{Driver: r.d}
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
				f := &faulty{Driver: r.d}
				id := r.submit(march{Steps: 100})
				r.worker(stubborn(r, f), operation.WorkerOptions{Instance: "late"})
				pass(time.Second)
				thaw := frozen(f)
				pass(10 * time.Second)
				r.worker(r.q, operation.WorkerOptions{Instance: "two"})
				pass(15 * time.Second)
				thaw()
				if !fence {
					f.set(func(ctx context.Context, ws []driver.Write, _ func() []driver.WriteResult) []driver.WriteResult {
						for i := range ws {
							if strings.HasPrefix(ws[i].Name, "op/") {
								ws[i].Fence, ws[i].If = nil, 0
							}
						}
						return r.d.KV().Apply(ctx, driver.OperationsBucket, driver.KVOptions{}, ws...)
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
		f := &faulty{Driver: r.d}
		id := r.submit(march{Steps: 60})
		r.worker(r.queue(f), operation.WorkerOptions{})
		pass(10*time.Second + 500*time.Millisecond)
		f.set(func(context.Context, []driver.Write, func() []driver.WriteResult) []driver.WriteResult {
			return []driver.WriteResult{{Err: driver.ErrNotApplied}}
		})
		pass(5 * time.Minute)
		f.set(nil)
		pass(5 * time.Minute)
		if op := r.get(id); op.State != operation.Done || op.Done != 54 {
			r.Errorf("%+v", op)
		}
	})
}

// A cancel that crosses the notes of the worker is not lost, whoever is first.
func TestCancelCrossesNotes(t *testing.T) {
	virtual(t, func(r *rig) {
		f := &faulty{Driver: r.d}
		id := r.submit(march{Steps: 100})
		r.worker(r.q, operation.WorkerOptions{})
		pass(5*time.Second + 500*time.Millisecond)
		crossed := 0
		f.set(func(_ context.Context, ws []driver.Write, apply func() []driver.WriteResult) []driver.WriteResult {
			if strings.HasPrefix(ws[0].Name, "op/") && crossed < 3 {
				crossed++
				time.Sleep(1100 * time.Millisecond) // a note is written meanwhile
			}
			return apply()
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
		f := &faulty{Driver: r.d}
		id := r.submit(march{Steps: 30})
		r.worker(r.queue(f), operation.WorkerOptions{})
		pass(5*time.Second + 500*time.Millisecond)
		request, lost := "", 0
		f.set(func(_ context.Context, ws []driver.Write, apply func() []driver.WriteResult) []driver.WriteResult {
			if request == "" && ws[0].Name == "op/"+id {
				request = ws[0].Request
			}
			if ws[0].Request != "" && ws[0].Request == request {
				lost++
				apply()
				return []driver.WriteResult{{Err: driver.ErrUnknown}}
			}
			return apply()
		})
		pass(40 * time.Second)
		if op := r.get(id); op.State != operation.Done || op.Takes != 1 || op.Done != 27 || lost < 5 {
			r.Errorf("%+v, %d answers lost", op, lost)
		}
		r.marched(id, 30, 0)
	})
}
