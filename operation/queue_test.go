package operation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// What is wrong with a request is told before anything is stored, and how to mend it.
func TestBadRequests(t *testing.T) {
	virtual(t, func(r *rig) {
		long := strings.Repeat("x", 65)
		for name, c := range map[string]struct {
			req  operation.Request
			kind error
			says []string
		}{
			"unknown kind": {operation.Request{Kind: "dance"}, ferry.ErrInvalid,
				[]string{`no kind of operation "dance"`, "knows march"}},
			"bad arguments": {operation.Request{Kind: "march", Args: march{Steps: -1}}, ferry.ErrInvalid,
				[]string{"backwards"}},
			"other fields": {operation.Request{Kind: "march", Args: map[string]int{"step": 1}}, ferry.ErrInvalid,
				[]string{"step", "fields"}},
			"no JSON": {operation.Request{Kind: "march", Args: func() {}}, ferry.ErrInvalid, []string{"no JSON"}},
			"long arguments": {operation.Request{Kind: "march", Args: march{Only: strings.Repeat("x", operation.MaxArgs)}},
				ferry.ErrTooLarge, []string{"16384"}},
			"long id": {operation.Request{Kind: "march", Args: march{}, ID: long}, ferry.ErrInvalid,
				[]string{"65 bytes", "at most 64"}},
			"strange id": {operation.Request{Kind: "march", Args: march{}, ID: "a/b"}, ferry.ErrInvalid, []string{"a/b"}},
			"long by": {operation.Request{Kind: "march", Args: march{}, By: strings.Repeat("x", 129)}, ferry.ErrInvalid,
				[]string{"129 bytes", "128"}},
			"strange by": {operation.Request{Kind: "march", Args: march{}, By: "a\x1bb"}, ferry.ErrInvalid,
				[]string{"printable"}},
		} {
			_, err := r.q.Submit(r.Context(), c.req)
			r.wants(err, c.kind, c.says...)
			if r.Failed() {
				r.Fatal(name)
			}
		}
		if p, err := r.q.List(r.Context(), operation.Query{}); err != nil || len(p.Operations) != 0 {
			r.Errorf("%+v %v", p, err)
		}
		_, err := r.q.Get(r.Context(), "nobody")
		r.wants(err, ferry.ErrNotFound, "nobody", "a week")
		_, err = r.q.Get(r.Context(), long)
		r.wants(err, ferry.ErrInvalid, "at most 64")
		r.wants(r.q.Cancel(r.Context(), "nobody"), ferry.ErrNotFound)
	})
}

func TestBadKindsAndWorkers(t *testing.T) {
	virtual(t, func(r *rig) {
		b, err := ferry.New(shared{r.d}, ferry.Options{})
		r.ok(err)
		defer func() { _ = b.Close(context.Background()) }()
		run := operation.Work[march]{Run: r.march}
		for _, kinds := range [][]operation.Kind{
			{operation.NewKind("", run)}, {operation.NewKind("a b", run)}, {operation.NewKind(strings.Repeat("k", 65), run)},
			{operation.NewKind("nothing", operation.Work[march]{})},
			{operation.NewKind("twice", run), operation.NewKind("twice", run)},
		} {
			_, err := operation.New(b, kinds...)
			r.wants(err, ferry.ErrInvalid)
		}
		_, err = operation.New(nil)
		r.wants(err, ferry.ErrInvalid)
		none, err := operation.New(b)
		r.ok(err)
		for q, os := range map[*operation.Queue][]operation.WorkerOptions{nil: {{}}, none: {{}},
			r.q: {{Lease: time.Millisecond}, {Every: -1}, {Instance: strings.Repeat("x", 129)}}} {
			for _, o := range os {
				_, err := operation.NewWorker(q, o)
				r.wants(err, ferry.ErrInvalid)
			}
		}
	})
}

// A name is submitted once, and no more are open than may be.
func TestNamesAndBounds(t *testing.T) {
	virtual(t, func(r *rig) {
		req := operation.Request{Kind: "march", Args: march{}, ID: "nightly-2000-01-01"}
		_, err := r.q.Submit(r.Context(), req)
		r.ok(err)
		_, err = r.q.Submit(r.Context(), req)
		r.wants(err, ferry.ErrConflict, "nightly-2000-01-01")
		kv := r.d.KV()
		for i := range operation.MaxOpen - 2 { // faster than to submit each
			res := kv.Apply(r.Context(), driver.OperationsBucket, driver.KVOptions{},
				driver.Write{Name: fmt.Sprintf("op/x%03d", i), Data: []byte(`{"kind":"other","args":{}}`)})
			r.ok(res[0].Err)
		}
		r.submit(march{})
		_, err = r.q.Submit(r.Context(), operation.Request{Kind: "march", Args: march{}})
		r.wants(err, ferry.ErrFull, "1000 operations are open")
		r.ok(r.q.Cancel(r.Context(), "x000"))
		r.submit(march{})
	})
}

// List has all, oldest first and by pages, and leaves out what is not asked for.
func TestList(t *testing.T) {
	virtual(t, func(r *rig) {
		var ids []string
		for range 5 {
			ids = append(ids, r.submit(march{Steps: 1}))
			pass(time.Millisecond)
		}
		if !slices.IsSorted(ids) {
			r.Errorf("%v", ids)
		}
		r.ok(r.q.Cancel(r.Context(), ids[1]))
		kv := r.d.KV()
		r.ok(kv.Apply(r.Context(), driver.OperationsBucket, driver.KVOptions{},
			driver.Write{Name: "op/broken", Data: []byte(`no`)})[0].Err)
		all := func(q operation.Query) (got []string) {
			for {
				p, err := r.q.List(r.Context(), q)
				r.ok(err)
				for _, op := range p.Operations {
					got = append(got, op.ID)
				}
				if q.Cursor = p.Next; p.Next == "" {
					return got
				}
			}
		}
		if got := all(operation.Query{Limit: 2}); !slices.Equal(got, append(slices.Clone(ids), "broken")) {
			r.Errorf("%v", got)
		}
		if got := all(operation.Query{Open: true, Prefix: "mar"}); !slices.Equal(got,
			slices.Delete(slices.Clone(ids), 1, 2)) {
			r.Errorf("%v", got)
		}
		_, err := r.q.Get(r.Context(), "broken")
		r.wants(err, ferry.ErrInvalid, "cannot be read")
	})
}

// An operation that nobody works on is cancelled at once; the second cancel says that it is over.
// Whoever follows sees each operation from its submission to its end, whichever it is.
func TestChanges(t *testing.T) {
	virtual(t, func(r *rig) {
		ops, revision, err := r.q.Open(r.Context())
		if r.ok(err); len(ops) != 0 {
			r.Errorf("%+v are open, want none", ops)
		}
		first := r.submit(march{Steps: 1})
		seen := map[string]operation.State{}
		follow := func(id string, until operation.State) {
			r.Helper()
			for seen[id] != until {
				ops, next, err := r.q.Changes(r.Context(), revision)
				r.ok(err)
				for _, op := range ops {
					seen[op.ID] = op.State
				}
				revision = next
			}
		}
		follow(first, operation.Waiting)
		second := r.submit(march{Steps: 1})
		stop := r.worker(r.q, operation.WorkerOptions{})
		follow(first, operation.Done)
		follow(second, operation.Done)
		stop()
		if ops, _, err := r.q.Open(r.Context()); err != nil || len(ops) != 0 {
			r.Errorf("%+v are open, %v", ops, err)
		}
	})
}

func TestCancelOfAWaitingOperation(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 5})
		r.ok(r.q.Cancel(r.Context(), id))
		op := r.get(id)
		if op.State != operation.Cancelled || op.Ended.IsZero() || op.Submitted.IsZero() || op.Cancelling {
			r.Errorf("%+v", op)
		}
		r.wants(r.q.Cancel(r.Context(), id), ferry.ErrConflict, "is cancelled since", "nothing to cancel")
		stop := r.worker(r.q, operation.WorkerOptions{})
		pass(time.Minute)
		stop()
		r.marched(id, 0, 0)
	})
}

// Do does it here, and a dry run counts, without a trace in the broker.
func TestDo(t *testing.T) {
	virtual(t, func(r *rig) {
		p, err := r.q.Do(r.Context(), operation.Request{Kind: "march", Args: march{Steps: 12}, DryRun: true})
		if err != nil || p.Done != 12 || len(r.steps[""]) != 0 {
			r.Errorf("%+v %v", p, err)
		}
		p, err = r.q.Do(r.Context(), operation.Request{Kind: "march", Args: march{Steps: 12}})
		if err != nil || p.Done != 11 || p.Skipped != 1 || p.Total != 12 || len(p.Why) != 1 {
			r.Errorf("%+v %v", p, err)
		}
		_, err = r.q.Do(r.Context(), operation.Request{Kind: "march", Args: march{Steps: 12, Fails: "for good"}})
		r.wants(err, ferry.ErrConflict, "a wall")
		list, err := r.q.List(r.Context(), operation.Query{})
		if err != nil || len(list.Operations) != 0 {
			r.Errorf("%+v %v", list, err)
		}
	})
}

// What is stored reads back as it was submitted.
func TestArgumentsComeBack(t *testing.T) {
	virtual(t, func(r *rig) {
		id := r.submit(march{Steps: 3, Only: "a < b & 世界"})
		var got march
		if err := json.Unmarshal(r.get(id).Args, &got); err != nil || got != (march{Steps: 3, Only: "a < b & 世界"}) {
			r.Errorf("%+v %v", got, err)
		}
	})
}
