package operation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

// An operation is seen to wait, run and end, and is forgotten after a week.
func TestLifeOfAnOperation(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 30})
		stop := r.worker(r.q, operation.WorkerOptions{Instance: "one"})
		pass(10*time.Second + 100*time.Millisecond)
		op := r.get(id)
		if op.State != operation.Running || op.Worker != "one" || op.Takes != 1 || op.Phase != "marching" || op.Done < 8 ||
			op.Done > 10 || op.Total != 30 || op.Started.IsZero() {
			r.Errorf("%+v", op)
		}
		pass(25 * time.Second)
		op = r.get(id)
		if op.State != operation.Done || op.Done != 27 || op.Skipped != 3 || op.Scanned != 30 || op.Takes != 1 ||
			op.Problem != "" || op.Ended.Sub(op.Started) < 30*time.Second {
			r.Errorf("%+v", op)
		}
		if len(op.Why) != 1 { // the numbers in the reasons do not make them different
			r.Errorf("%v", op.Why)
		}
		r.marched(id, 30, 0)
		r.wants(r.q.Cancel(r.Context(), id), ferry.ErrConflict, "is done since")
		stop() // it would look many times in a week
		pass(operation.History - time.Minute)
		r.get(id)
		pass(2 * time.Minute)
		_, err := r.q.Get(r.Context(), id)
		r.wants(err, ferry.ErrNotFound)
		vs, err := r.d.KV().List(r.Context(), driver.KVQuery{Bucket: driver.OperationsBucket})
		if err != nil || len(vs.Values) != 0 {
			r.Errorf("left behind: %+v %v", vs, err)
		}
	})
}

// A stop hands over at once: the next worker goes on with the next step.
func TestStopHandsOver(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 30})
		stop := r.worker(r.q, operation.WorkerOptions{Instance: "one"})
		r.worker(r.q, operation.WorkerOptions{Instance: "two"})
		pass(10*time.Second + 500*time.Millisecond)
		first := r.get(id).Worker
		stop()
		pass(25 * time.Second)
		op := r.get(id)
		if op.State != operation.Done || op.Done != 27 || first == "one" && (op.Worker != "two" || op.Takes != 2) {
			r.Errorf("%+v, first %s", op, first)
		}
		r.marched(id, 30, 0)
	})
}

// Of many operations each is done once, by workers that share them.
func TestWorkersShare(t *testing.T) {
	virtual(t, func(r *rig) {
		var ids []string
		for range 12 {
			ids = append(ids, r.submit(march{Steps: 10}))
		}
		for range 3 {
			r.worker(r.q, operation.WorkerOptions{})
		}
		pass(50 * time.Second)
		for _, id := range ids {
			if op := r.get(id); op.State != operation.Done || op.Takes != 1 {
				r.Errorf("%+v", op)
			}
			r.marched(id, 10, 0)
		}
	})
}

// A running operation ends soon after its cancel, and what is done stays done.
func TestCancelOfARunningOperation(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 1000})
		r.worker(r.q, operation.WorkerOptions{})
		pass(20*time.Second + 300*time.Millisecond)
		r.ok(r.q.Cancel(r.Context(), id))
		if op := r.get(id); !op.Cancelling || op.State != operation.Running {
			r.Errorf("%+v", op)
		}
		r.wants(r.q.Cancel(r.Context(), id), ferry.ErrConflict, "was cancelled before", "worker looks")
		pass(2 * time.Second)
		op := r.get(id)
		if op.State != operation.Cancelled || op.Cancelling || op.Done < 18 || op.Done > 21 {
			r.Errorf("%+v", op)
		}
		r.wants(r.q.Cancel(r.Context(), id), ferry.ErrConflict, "is cancelled since")
		next := r.submit(march{Steps: 1}) // the worker goes on with others
		pass(5 * time.Second)
		if op := r.get(next); op.State != operation.Done {
			r.Errorf("%+v", op)
		}
	})
}

// What fails for a time is tried again behind the others, what fails for good or panics ends, and says why.
func TestFailures(t *testing.T) {
	virtual(t, func(r *rig) {
		always, once, good, panics, fine := r.submit(march{Steps: 5, Fails: "always"}),
			r.submit(march{Steps: 5, Fails: "once"}), r.submit(march{Steps: 5, Fails: "for good"}),
			r.submit(march{Steps: 5, Fails: "panic"}), r.submit(march{Steps: 5})
		var told []error
		r.worker(r.q, operation.WorkerOptions{OnError: func(err error) { told = append(told, err) }})
		pass(3 * time.Minute)
		for id, want := range map[string]operation.State{once: operation.Done, good: operation.Failed,
			panics: operation.Failed, fine: operation.Done} {
			if op := r.get(id); op.State != want {
				r.Errorf("%+v, want %s", op, want)
			}
		}
		r.marched(once, 5, 0)
		if op := r.get(once); op.Takes != 2 || op.Problem != "" || op.Done != 5 {
			r.Errorf("%+v", op)
		}
		if op := r.get(good); !contains(op.Problem, "a wall") || op.Done != 2 {
			r.Errorf("%+v", op)
		}
		if op := r.get(panics); !contains(op.Problem, "panicked: a hole") {
			r.Errorf("%+v", op)
		}
		op := r.get(always)
		if op.State.Ended() || op.Takes < 10 || !contains(op.Problem, "away") && op.State == operation.Waiting {
			r.Errorf("%+v", op)
		}
		if len(told) < 10 {
			r.Errorf("%d errors were told", len(told))
		}
		r.ok(r.q.Cancel(r.Context(), always))
		pass(10 * time.Second)
		if op := r.get(always); op.State != operation.Cancelled {
			r.Errorf("%+v", op)
		}
	})
}

// Drain comes back when nothing is open, and waits for what others work on.
func TestDrain(t *testing.T) {
	virtual(t, func(r *rig) {
		a, b := r.submit(march{Steps: 20}), r.submit(march{Steps: 5})
		r.worker(r.q, operation.WorkerOptions{})
		pass(time.Second)
		w, err := operation.NewWorker(r.q, operation.WorkerOptions{})
		r.ok(err)
		r.ok(w.Drain(r.Context()))
		for _, id := range []string{a, b} {
			if op := r.get(id); op.State != operation.Done || op.Takes != 1 {
				r.Errorf("%+v", op)
			}
		}
	})
}

// What this program does not know, or is of a newer version, is left to others.
func TestOtherKindsAreLeftAlone(t *testing.T) {
	virtual(t, func(r *rig) {
		kv := r.d.KV()
		for id, data := range map[string]string{"other": `{"kind":"dance","args":{}}`,
			"newer": `{"kind":"march","args":{"steps":3,"narrower":true}}`, "broken": `no`} {
			r.ok(kv.Apply(r.Context(), driver.OperationsBucket, driver.KVOptions{},
				driver.Write{Name: "op/" + id, Data: []byte(data)})[0].Err)
		}
		id := r.submit(march{Steps: 1})
		r.worker(r.q, operation.WorkerOptions{})
		pass(time.Minute)
		if r.get(id).State != operation.Done || r.get("other").State != operation.Waiting ||
			r.get("newer").State != operation.Waiting {
			r.Error("others were touched, or our own was not done")
		}
		r.marched("newer", 0, 0)
	})
}

// Next tells of each change, and that nobody works on it any more. A step and a note are due at the same moments, so
// that a note may find nothing new, and the next one two steps.
func TestNext(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 10})
		stop := r.worker(r.q, operation.WorkerOptions{})
		restart := sync.OnceFunc(func() { r.worker(r.q, operation.WorkerOptions{}) })
		op, steps, states := r.get(id), []int64{}, map[operation.State]bool{}
		for !op.State.Ended() {
			next, err := r.q.Next(r.Context(), op)
			r.ok(err)
			if next.Revision <= op.Revision {
				r.Fatalf("revision %d after %d", next.Revision, op.Revision)
			}
			op = next
			steps, states[op.State] = append(steps, op.Done), true
			if op.Done >= 5 {
				stop()
				restart()
			}
		}
		if len(steps) < 5 || !states[operation.Running] || op.State != operation.Done {
			r.Errorf("%v %v %+v", steps, states, op)
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if _, err := r.q.Next(ctx, op); !errors.Is(err, context.DeadlineExceeded) {
			r.Errorf("what has ended does not change: %v", err)
		}
	})
}
