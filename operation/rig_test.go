package operation_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/operation"
)

// march is work that takes a second for each of its steps.
type march struct {
	Steps int    `json:"steps"`
	Fails string `json:"fails,omitempty"` // at its third step: "once", "always", "for good", "panic"
	Only  string `json:"only,omitempty"`
}

// rig is a broker in virtual time, and a diary of what was worked on.
type rig struct {
	*testing.T
	d driver.Driver
	q *operation.Queue

	mu     sync.Mutex
	busy   map[string]int
	steps  map[string][]int
	failed map[string]bool
}

func virtual(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, d: d, busy: map[string]int{}, steps: map[string][]int{}, failed: map[string]bool{}}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		r.q = r.queue(d)
		test(r)
	})
}

// shared is a driver that somebody else closes.
type shared struct{ driver.Driver }

func (shared) Close(context.Context) error { return nil }

// queue returns one on a driver, which knows how to march.
func (r *rig) queue(d driver.Driver) *operation.Queue {
	r.Helper()
	b, err := ferry.New(shared{d}, ferry.Options{})
	r.ok(err)
	r.Cleanup(func() { _ = b.Close(context.Background()) })
	q, err := operation.New(b, operation.NewKind("march", operation.Work[march]{Run: r.march, Check: func(m march) error {
		if m.Steps < 0 {
			return driver.NewError(ferry.ErrInvalid, "backwards", "forwards", nil)
		}
		return nil
	}}))
	r.ok(err)
	return q
}

// march goes on behind the last step that was saved.
func (r *rig) march(ctx context.Context, t *operation.Task, m march) error {
	id := t.ID()
	r.mu.Lock()
	r.busy[id]++
	if r.busy[id] > 1 {
		r.Errorf("two work on %s", id)
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.busy[id]--
		r.mu.Unlock()
	}()
	t.Phase("marching")
	at := 0
	if _, err := t.Checkpoint(&at); err != nil {
		return err
	}
	for ; at < m.Steps; at++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		if at == 2 {
			if err := r.stumble(id, m.Fails); err != nil {
				return err
			}
		}
		if t.DryRun() {
			t.Did(1)
			continue
		}
		r.mu.Lock()
		r.steps[id] = append(r.steps[id], at)
		r.mu.Unlock()
		if at%10 == 9 {
			t.Skip(1, fmt.Errorf("stone %d", at))
		} else {
			t.Did(1)
		}
		t.Scanned(int64(at+1), int64(m.Steps))
		if err := t.Save(at + 1); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) stumble(id, how string) error {
	r.mu.Lock()
	again := r.failed[id]
	r.failed[id] = true
	r.mu.Unlock()
	switch how {
	case "panic":
		panic("a hole")
	case "for good":
		return driver.NewError(ferry.ErrConflict, "a wall", "go around", nil)
	case "always":
		return errors.New("the broker is away")
	case "once":
		if !again {
			return errors.New("the broker is away")
		}
	}
	return nil
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// wants demands an error of a kind, with a text.
func (r *rig) wants(err, kind error, texts ...string) {
	r.Helper()
	if !errors.Is(err, kind) {
		r.Errorf("got %v, want %v", err, kind)
		return
	}
	for _, text := range texts {
		if !contains(err.Error(), text) {
			r.Errorf("%q does not say %q", err, text)
		}
	}
}

func (r *rig) submit(m march) string {
	r.Helper()
	op, err := r.q.Submit(r.Context(), operation.Request{Kind: "march", Args: m, By: "ann"})
	r.ok(err)
	if op.State != operation.Waiting || op.Submitted.IsZero() || op.By != "ann" {
		r.Errorf("%+v", op)
	}
	return op.ID
}

// worker runs one, and returns what stops it.
func (r *rig) worker(q *operation.Queue, o operation.WorkerOptions) (stop func()) {
	r.Helper()
	w, err := operation.NewWorker(q, o)
	r.ok(err)
	return runtest.Start(r, w.Run)
}

func (r *rig) get(id string) operation.Operation {
	r.Helper()
	op, err := r.q.Get(r.Context(), id)
	r.ok(err)
	return op
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// marched demands that each step of an operation was taken, in order, and none twice more often than may be.
func (r *rig) marched(id string, steps, most int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	next, again := 0, 0
	for _, s := range r.steps[id] {
		if s > next {
			r.Fatalf("step %d after %d", s, next-1)
		}
		if s < next {
			again++
		}
		next = s + 1
	}
	if next != steps || again > most {
		r.Errorf("%d steps, %d times back; want %d, and %d at most", next, again, steps, most)
	}
}
