package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
	"github.com/ferrymq/ferry/operation/kinds"
)

const topic = "orders"

// rig is a broker, and a queue that knows every kind.
type rig struct {
	*testing.T
	b *ferry.Broker
	d driver.Driver
	q *operation.Queue
}

func newRig(t *testing.T, b *ferry.Broker) *rig {
	t.Helper()
	q, err := operation.New(b, append(kinds.All(b), kinds.Exports(b, t.TempDir()))...)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, b: b, d: b.Driver(), q: q}
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// publish publishes messages whose ids are numbered, some of each key.
func (r *rig) publish(prefix string, n int, delay time.Duration) {
	r.Helper()
	var ms []*driver.Message
	for i := range n {
		id := fmt.Sprintf("%s%04d", prefix, i)
		ms = append(ms, &driver.Message{ID: id, OwnID: true, Topic: topic, Body: []byte(id),
			Key: fmt.Sprint("k", i%7), Delay: delay})
	}
	for part := range slices.Chunk(ms, 500) {
		_, err := r.d.Publish(context.Background(), part, driver.PublishOptions{})
		r.ok(err)
	}
}

// settle takes n messages and settles them alike.
func (r *rig) settle(n int, s driver.Settlement) (ids []string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	sub, err := r.d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "rig", MaxRun: 100})
	r.ok(err)
	for len(ids) < n {
		ds, err := sub.Receive(ctx, min(n-len(ids), 500))
		r.ok(err)
		list := make([]driver.Settlement, len(ds))
		for i, d := range ds {
			list[i] = s
			list[i].Delivery = d
			ids = append(ids, d.ID)
		}
		r.ok(errors.Join(sub.Settle(ctx, list)...))
	}
	r.ok(sub.Close(ctx))
	return ids
}

// bury makes the next n messages dead letters.
func (r *rig) bury(n int) {
	r.Helper()
	r.settle(n, driver.Settlement{Outcome: driver.Dead,
		Failure: &driver.Failure{Reason: driver.ReasonTimeout, Error: "too slow"}})
}

// ids returns what is in a state.
func (r *rig) ids(state driver.State) (ids []string) {
	r.Helper()
	q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state, Limit: 1000}
	for {
		p, err := r.d.Browse(context.Background(), q)
		r.ok(err)
		for _, e := range p.Entries {
			ids = append(ids, e.ID)
		}
		if q.Cursor = p.Next; p.Next == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

// do submits an operation, works until it has ended, and demands its counts: the same that a dry run told.
func (r *rig) do(req operation.Request, state operation.State, done int64) operation.Operation {
	r.Helper()
	ctx := r.Context()
	if state == operation.Done {
		req.DryRun = true
		p, err := r.q.Do(ctx, req)
		if err != nil || p.Done != done {
			r.Fatalf("the dry run of %+v counts %+v, want %d: %v", req, p, done, err)
		}
		req.DryRun = false
	}
	op, err := r.q.Submit(ctx, req)
	r.ok(err)
	w, err := operation.NewWorker(r.q, operation.WorkerOptions{Every: 20 * time.Millisecond})
	r.ok(err)
	r.ok(w.Drain(ctx))
	op, err = r.q.Get(ctx, op.ID)
	r.ok(err)
	if op.State != state || state == operation.Done && op.Done != done {
		r.Fatalf("%+v, want %s and %d", op, state, done)
	}
	return op
}

// expect demands which messages are in a state.
func (r *rig) expect(state driver.State, want ...string) {
	r.Helper()
	if got := r.ids(state); !slices.Equal(got, want) {
		r.Fatalf("%d are %s, want %d: %.300v", len(got), state, len(want), got)
	}
}

// numbered are the ids of publish from one number to before another.
func numbered(prefix string, from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprintf("%s%04d", prefix, i))
	}
	return ids
}

// audit demands that nothing is lost or counted twice.
func (r *rig) audit() {
	r.Helper()
	report, err := r.d.Audit(context.Background(), topic, false)
	r.ok(err)
	if len(report.Problems) > 0 || len(report.Stats.Unbalanced()) > 0 {
		r.Errorf("%v %v", report.Problems, report.Stats.Unbalanced())
	}
}
